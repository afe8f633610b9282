#pragma once
// What a member says about the collective operation it is in, and how members' words are compared.

#include "config/dtype.hpp"
#include "config/ids.hpp"
#include "config/result.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace troupe::transport {

enum class operation_kind : std::uint32_t { barrier = 1, all_reduce = 2, all_gather = 3 };

std::string_view to_string(operation_kind kind) noexcept;

/// One member's call, told to the others before any value is used.
struct operation {
  operation_kind kind{};
  dtype type = dtype::f32;
  std::uint64_t number = 0; ///< Counts the calls of a group, from 1.
  epoch_id epoch{};
  std::uint64_t elements = 0; ///< all_reduce: of the vector; all_gather: of all parts together.
  std::uint64_t parts = 0;    ///< all_gather: a digest of the counts; otherwise 0.

  friend bool operator==(const operation&, const operation&) = default;
};

/// "all_reduce 17 of epoch 3 with 1024 f32 elements".
std::string describe(const operation& called);

/// The operation of an all_gather with these counts.
operation
gather_operation(std::uint64_t number, epoch_id epoch, std::span<const std::size_t> counts);

/// What every implementation of compute::collective takes.
struct collective_options {
  epoch_id epoch{};
  /// How long an operation may take in all; a member that is missing by then is named.
  std::chrono::milliseconds deadline{10'000};
  /// Called again and again while an operation waits, on the caller's thread.
  std::function<void()> progress = {};
  /// Asked again and again while an operation waits: the reason to give it up now, if there is one.
  std::function<std::optional<error>()> interrupted = {};
  /// The rank of member 0, for messages; without it members have no other name.
  std::optional<std::uint32_t> first_rank = {};
};

/// "rank 5", or "member 1" where ranks are not known.
std::string name_member(const collective_options& options, std::size_t member);

/// Compares the members' calls; by_member[m] is that of member m. The error (mismatch) names the
/// first member that differs from member 0, and is the same on every member.
std::optional<error> find_mismatch(std::span<const operation> by_member,
                                   const collective_options& options);

} // namespace troupe::transport
