#pragma once
// One case of the fault matrix: a cluster of real processes, requests that run on it, something
// that goes wrong, and what became of the requests.

#include "tests/support/observer.hpp"
#include "tests/support/tended_nodes.hpp"

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::tests {

enum class fault_at { load, prefill, decode, recovery };

std::string to_string(fault_at when);

/// A shape, and who meets its faults. Nodes are processes of one rank; the head is n0.
struct fault_shape {
  std::string name;
  std::size_t pipeline = 1;
  std::size_t tensor = 1;
  std::size_t victim = 1; ///< Node and rank.
  std::size_t second = 1; ///< Who is lost while the victim is being replaced.
  std::string link_to;    ///< A link towards the victim: frames that it needs.
  std::string link_from;  ///< One from it: frames that others need.
  std::string transports; ///< "": UCX chooses.
  bool apart = false;     ///< Each node on a host of its own, where the system allows that.

  std::size_t ranks() const { return pipeline * tensor; }
};

const std::vector<fault_shape>& fault_shapes();

/// Whether its nodes are on hosts of their own: all shapes where the test is told "apart".
bool is_apart(const fault_shape& shape);

struct fault_case {
  std::string what; ///< As a cluster file spells it.
  fault_at when = fault_at::load;
};

inline const std::array<std::string, 7> matrix_faults{
  "kill", "stop", "cut", "drop", "corrupt", "nan", "refuse_allocation"};

inline constexpr std::array<fault_at, 4> fault_moments{
  fault_at::load, fault_at::prefill, fault_at::decode, fault_at::recovery};

/// No value is computed while a shard loads.
bool is_possible(const fault_case& one);

struct case_result {
  std::optional<std::chrono::milliseconds> noticed; ///< From the fault to the end of the epoch.
  std::optional<std::chrono::milliseconds> resumed; ///< From there to the next token.
  std::uint64_t rows_again = 0; ///< Computed to rebuild state, in all ranks together.
  std::size_t lost = 0;         ///< Requests without an end, or with other tokens.
  std::string ending;
};

/// A cluster of a shape, which is repaired when something went wrong.
class fault_rig {
public:
  /// Starts it; `more` is TOML of its file.
  explicit fault_rig(const fault_shape& shape, const std::string& more = {});

  /// A case while it serves.
  case_result run(const fault_case& one);

  /// A case of the file, while it starts.
  case_result start(const fault_case& one);

private:
  void repair(const fault_case& one, const std::function<bool()>& done);
  void lose_victim(const live_requests& requests);
  bool has_happened() const;
  case_result judge(const fault_case& one, const live_requests& requests) const;
  std::map<pid_t, std::uint64_t> replayed();
  std::string words() const;

  const fault_shape& shape_;
  cluster where_;
  tended_nodes nodes_;
  observer watch_;
  std::size_t booked_ = 0; ///< Faults that had happened before the case.
};

/// A cluster that meets the fault while it starts.
case_result run_at_start(const fault_shape& shape, const fault_case& one);

} // namespace troupe::tests
