#pragma once
// What a partition holds of its model on its device, by what it is: when a rank gets other layers,
// it takes over what it owns then as well, and reads the rest only.

#include "compute/buffer.hpp"
#include "compute/device.hpp"
#include "compute/model.hpp"
#include "compute/weights/digest.hpp"
#include "config/topology.hpp"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe::compute {

/// Digest of the bytes of one owned part of a tensor, as loaded (equal for ranks that own the same
/// part: the start-up handshake compares them).
struct loaded_digest {
  std::string tensor;
  range rows;
  range columns;
  digest128 digest;
};

/// One matrix or vector, made of one or more parts of tensors.
struct held_weight {
  std::vector<loaded_digest> parts;
  std::shared_ptr<const matrix> rows; ///< Or ...
  buffer values;                      ///< ... a vector of f32.
  std::size_t bytes = 0;
};

/// Of one model on one device. Copies share the memory, which lives as long as one of them does.
class held_weights {
public:
  using name = std::string;

  /// How a weight is held, of which parts it is made and how these are cut.
  static name name_of(std::string_view holding, std::span<const owned_tensor* const> parts);

  void add(name of, held_weight weight);

  /// Null when it is not held.
  const held_weight* find(const name& of) const;

  /// Lets go of all that is not made of parts that this shard owns, cut in the same way.
  void keep_only(const shard_description& shard);

private:
  std::map<name, held_weight> weights_;
};

} // namespace troupe::compute
