#pragma once
// Brings the tensors of a shard onto a device, one after the other, as the layers ask for them.

#include "compute/device.hpp"
#include "compute/model.hpp"
#include "compute/partition.hpp"
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
class shard_loader {
public:
  /// All of them outlive the loader.
  shard_loader(const model& source,
               const shard_description& shard,
               dtype hold,
               device& where,
               const load_progress& progress);

  /// What the shard owns of the tensor called `name`; check() when it owns nothing of it.
  const owned_tensor& describe(std::string_view name) const;

  /// For matmul: one matrix with the rows of all of them, one after the other. The sources' memory
  /// is given back.
  result<std::unique_ptr<matrix>> packed(std::span<const std::string> names);

  result<std::unique_ptr<matrix>> packed(std::string_view name) {
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
  result<std::unique_ptr<matrix>> table(std::string_view name);

  /// Vectors one after the other, converted to f32.
  result<device_vector> vector(std::span<const std::string> names);

  result<device_vector> vector(std::string_view name) {
    return vector(std::vector{std::string(name)});
  }

  /// What has been read so far.
  load_report report() const;

private:
  result<shard_reader::part> take(const owned_tensor& owned);
  void finish(const owned_tensor& owned);

  const shard_description& shard_;
  dtype hold_;
  device& where_;
  const load_progress& progress_;
  shard_reader reader_;
  std::unordered_map<std::string_view, const owned_tensor*> by_name_;
  std::size_t done_bytes_ = 0;
  std::size_t held_bytes_ = 0;
  std::vector<loaded_digest> digests_;
};

} // namespace troupe::compute
