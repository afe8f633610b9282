#pragma once
// Faults as config: what goes wrong on purpose, at which rank, and at which moment. Places and
// moments are sentences in the file ("rank 0 -> rank 1", "step 20 layer 3") and plain values here.
// A moment is counted in what the place does, never in time, so that the same file goes wrong in
// the same way twice. Pure; any thread.

#include "config/settings.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

enum class fault_action : std::uint8_t {
  kill,              ///< The process ends at once (SIGKILL).
  stop,              ///< The rank's thread stands still; of a node, its process (SIGSTOP).
  slow,              ///< Each layer takes `factor` times as long.
  drop,              ///< A frame is lost on the wire.
  delay,             ///< A frame leaves late, and those behind it.
  duplicate,         ///< A frame is on the wire twice.
  reorder,           ///< A frame changes places with the next one.
  truncate,          ///< A frame loses the second half of its payload.
  corrupt,           ///< One bit of a frame is another.
  cut,               ///< A link takes no frames any more.
  refuse_allocation, ///< The device has no memory.
  nan,               ///< An activation is not a number.
  wrong_length,      ///< A collective is called with another length than by the others.
  wrong_operation,   ///< A collective is called where the others call another one.
  fail_collective,   ///< A collective fails at this member alone.
  fail_transport,    ///< The wires refuse a connect or a send.
};

inline constexpr std::size_t fault_actions = 16;

std::string_view to_string(fault_action what) noexcept;

/// As the file spells them, in the order of the enum.
std::vector<std::string_view> fault_action_names();

/// Stands for the conductor where a rank's number is expected.
inline constexpr std::uint32_t conductor_spot = 0xffff'fffe;

/// One party that does something wrong: by itself, or towards one other.
struct fault_spot {
  std::uint32_t at = 0; ///< A rank's number, or conductor_spot.
  std::optional<std::uint32_t> to;

  friend bool operator==(const fault_spot&, const fault_spot&) = default;
};

/// "rank 1", "conductor", "rank 0 -> rank 1".
std::string name_spot(const fault_spot& spot);

enum class fault_event : std::uint8_t { step, message, call, phase, load };

/// When it happens: at the `count`-th event of a kind.
struct fault_moment {
  fault_event event = fault_event::step;
  std::uint64_t count = 1;            ///< Of load: percent.
  std::optional<std::uint64_t> layer; ///< Within the step.
  std::string phase;
};

struct fault {
  std::string name;      ///< "fault[2]" of the cluster file, "injected" by `troupe inject`.
  bool injected = false; ///< It is new whenever it comes; one of the file is the same in each life.
  fault_action what = fault_action::kill;
  std::vector<fault_spot> spots; ///< Each counts for itself.
  bool whole_process = false;    ///< A node's process is stopped, not a rank's thread.
  fault_moment when;
  std::uint64_t times = 1;
  std::uint64_t steps = 0; ///< 0: for good.
  std::uint64_t ms = 0;
  double factor = 1;
  std::string length; ///< "n-2", "n+2", "10n"; see length_of().
  std::uint64_t seed = 0;
};

/// Reads settings.faults. What is wrong is told in `found`, with carets; an entry that is wrong is
/// left out of the result. The names of phases are not known here and not looked at.
std::vector<fault> read_faults(const cluster_settings& settings, mistakes& found);

/// As read_faults, of one entry that is no part of `settings` (`troupe inject`); messages name the
/// option.
result<fault> read_fault(const cluster_settings& settings, const fault_settings& wanted);

/// How many elements `length` makes of n. nullopt where it is not of the form "n-2", "n+2", "10n".
std::optional<std::uint64_t> length_of(std::string_view length, std::uint64_t n);

/// A number that follows from the seed and the counter alone.
std::uint64_t draw(std::uint64_t seed, std::uint64_t counter) noexcept;

// -- the two halves of read_faults, in files of their own ----------------------------------------

/// What was wrong with a sentence, and what would work.
struct fault_mistake {
  std::string what;
  std::string instead;
};

struct fault_place {
  std::vector<fault_spot> spots;
  bool is_node = false;
};

using place_or_mistake = std::variant<fault_place, fault_mistake>;
using moment_or_mistake = std::variant<fault_moment, fault_mistake>;

/// "rank 1", "node b", "conductor", "any", "any link", "rank 0 -> rank 1", "rank 0 <-> conductor".
place_or_mistake read_place(const cluster_settings& settings, const fault_settings& wanted);

/// "step 20", "step 20 layer 3", "message 7", "call 3", "phase leaving", "phase joining 2", "load".
moment_or_mistake read_moment(std::string_view text);

/// The words of a sentence.
std::vector<std::string_view> words_of(std::string_view text);

/// The number that a word is; nullopt for anything else.
std::optional<std::uint64_t> number_of(std::string_view word);

} // namespace troupe
