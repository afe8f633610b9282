#pragma once
// check(): a broken invariant ends the process, in every build. A dead rank is a fault that the
// cluster knows how to survive; a rank that computes on a broken invariant is not.

#include <source_location>
#include <string_view>

namespace troupe {

/// Prints the invariant with its place and aborts.
[[noreturn]] void check_failed(std::string_view invariant, const std::source_location& where);

/// `invariant` is a sentence that holds: "a unit index lies in the owned range".
inline void check(bool holds,
                  std::string_view invariant,
                  const std::source_location& where = std::source_location::current()) {
  if (!holds) [[unlikely]]
    check_failed(invariant, where);
}

} // namespace troupe
