#pragma once
// Ids that cannot be mixed up: each is an enum type of its own over an integer.

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace troupe {

/// Position of a rank in the topology, 0 ... world - 1 (config/topology.hpp has the numbering).
enum class rank_id : std::uint32_t {};
/// Position of a pipeline stage, 0 ... pipeline - 1.
enum class stage_id : std::uint32_t {};
/// Position of a node in the cluster file.
enum class node_id : std::uint32_t {};
/// One plan over one set of ranks; the first is 1.
enum class epoch_id : std::uint64_t {};
/// One step of the conductor within an epoch; the first is 1.
enum class step_id : std::uint64_t {};
/// One request for text, unique for the life of a conductor.
enum class request_id : std::uint64_t {};
/// The place of a live sequence in every rank's state, given by the conductor.
enum class slot_id : std::uint32_t {};
/// One page of attention memory; the same id names the same tokens on every rank.
enum class page_id : std::uint32_t {};

/// An entry of the vocabulary. Tokens come in large arrays that tokenizers and wires walk through,
/// so this one is a plain integer.
using token_id = std::uint32_t;

/// The integer under an id.
template <class Id>
constexpr auto number(Id id) noexcept {
  return static_cast<std::underlying_type_t<Id>>(id);
}

} // namespace troupe
