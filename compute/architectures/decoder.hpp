#pragma once
// The decoder that the known families share: pre-norm attention with rotary positions and grouped
// heads, then a gated feed-forward layer. One group, one unit a layer; what differs is in the spec.

#include "compute/architectures/architecture.hpp"
#include "compute/architectures/decoder_spec.hpp"
#include "config/result.hpp"

#include <memory>

namespace troupe::compute {

/// The name of the one group.
inline constexpr std::string_view decoder_group = "decoder";

/// Roles that are owned without a unit.
inline constexpr std::string_view embedding_role = "embedding";
inline constexpr std::string_view final_norm_role = "final_norm";
inline constexpr std::string_view head_role = "head";

/// Describes a decoder; checks its own description (rules 3, 7, 9, 12).
result<std::unique_ptr<const architecture>> make_decoder(decoder_spec spec);

} // namespace troupe::compute
