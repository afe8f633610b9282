#pragma once
// Brings the tensors of a shard onto a device, one after the other, as the layers ask for them.

#include "compute/device.hpp"
#include "compute/model.hpp"
#include "compute/partition.hpp"
#include "compute/weights/held_weights.hpp"
#include "compute/weights/shard_reader.hpp"
#include "config/result.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe::compute {

/// A vector of f32 in the device's memory.
class device_vector {
public:
  device_vector() = default;

  explicit device_vector(buffer memory) : memory_(std::move(memory)) {}

  std::span<const float> values() const { return memory_.as<float>(); }

  std::size_t size() const noexcept { return memory_.size() / sizeof(float); }

private:
  buffer memory_;
};

/// Used by one thread while a partition loads. Every tensor of the description can be taken once.
/// What is held already is handed out as it is and not read again.
class shard_loader {
public:
  /// All of them outlive the loader.
  shard_loader(const model& source,
               const shard_description& shard,
               dtype hold,
               device& where,
               const load_progress& progress,
               held_weights held = {});

  /// What the shard owns of the tensor called `name`; check() when it owns nothing of it.
  const owned_tensor& describe(std::string_view name) const;

  /// For matmul: one matrix with the rows of all of them, one after the other. The sources' memory
  /// is given back.
  result<std::shared_ptr<const matrix>> packed(std::span<const std::string> names);

  result<std::shared_ptr<const matrix>> packed(std::string_view name) {
    return packed(std::vector{std::string(name)});
  }

  /// An embedding that is the head as well. Look-ups see it as it is stored, as they do on a rank
  /// that has no head: where that is not how weights are held, they go to the file.
  struct tied_matrix {
    std::shared_ptr<const matrix> lookups;
    std::shared_ptr<const matrix> head;
  };

  result<tied_matrix> tied(std::string_view name);

  /// For lookups only; stays where it is stored.
  result<std::shared_ptr<const matrix>> table(std::string_view name);

  /// Vectors one after the other, converted to f32.
  result<device_vector> vector(std::span<const std::string> names);

  result<device_vector> vector(std::string_view name) {
    return vector(std::vector{std::string(name)});
  }

  /// What has been read so far.
  load_report report() const;

  /// All that was handed out; at the end, once.
  held_weights take_weights() { return std::move(given_); }

private:
  using parts = std::vector<const owned_tensor*>;

  parts describe_all(std::span<const std::string> names) const;

  /// A weight that is held already, or else the one that `load` makes of its parts, whose digests
  /// it adds.
  template <class Load>
  result<held_weight> give(std::string_view holding, const parts& of, Load load);

  using opened = std::vector<std::unique_ptr<shard_part>>;

  result<opened> open(const parts& of);

  /// Adds the digests of parts that have been read.
  static void add_digests(const parts& of, const opened& read, held_weight& into);

  const shard_description& shard_;
  dtype hold_;
  device& where_;
  const load_progress& progress_;
  shard_reader reader_;
  std::unordered_map<std::string_view, const owned_tensor*> by_name_;
  std::size_t done_bytes_ = 0;
  load_report report_;
  held_weights held_;
  held_weights given_;
};

} // namespace troupe::compute
