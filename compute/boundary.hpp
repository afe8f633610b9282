#pragma once
// What travels from one pipeline stage to the next: one primary tensor, ordered auxiliaries, with
// roles, element types and shapes. Contract rules 12, 36 and 37.

#include "config/dtype.hpp"
#include "config/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::compute {

/// A dimension is fixed by the architecture, or the number of rows of the step.
struct dimension {
  enum class kind : std::uint8_t { fixed, rows };
  kind is = kind::fixed;
  std::size_t size = 0; ///< For fixed ones; positive.

  friend bool operator==(const dimension&, const dimension&) = default;
};

/// One tensor of a boundary, for example role "hidden", f32, [rows, 2048].
struct boundary_tensor {
  std::string role;
  dtype type = dtype::f32;
  std::vector<dimension> shape;

  friend bool operator==(const boundary_tensor&, const boundary_tensor&) = default;
};

/// The complete schema of a route. `identity` names architecture and widths, so that two stages of
/// different models never take each other's tensors.
struct boundary_schema {
  std::string identity;
  boundary_tensor primary;
  std::vector<boundary_tensor> auxiliaries;

  /// Rule 12: non-empty identity; primary of activation type; roles non-empty and unique; at least
  /// one dimension each; fixed dimensions positive.
  result<void> validate() const;

  /// Payload bytes of one step with `rows` rows.
  std::size_t bytes(std::size_t rows) const;

  friend bool operator==(const boundary_schema&, const boundary_schema&) = default;
};

/// A tensor as one side offers it: what a received frame claims, or what a source is about to send.
struct offered_tensor {
  std::string_view role;
  dtype type = dtype::f32;
  std::vector<std::size_t> shape;
};

/// Rule 37, in its order: tensor count, then role by role name, shape and type, schema identity,
/// rows within [1, max_rows]; each a distinct sentence. Endpoint membership is the caller's.
result<void> admit_boundary(const boundary_schema& schema,
                            std::string_view offered_identity,
                            std::span<const offered_tensor> offered,
                            std::size_t rows,
                            std::size_t max_rows);

} // namespace troupe::compute
