#pragma once
// What Python's str can do, for methods and filters.

#include "compute/chat/run.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::compute::chat {

bool has_text_method(std::string_view name) noexcept;

/// `name` is one of them.
value call_text_method(
  run& running, position at, const std::string& of, std::string_view name, const call_values& with);

/// str.split(): at `separator`, or at white space; at most `most` cuts, all if negative.
value split(run& running,
            position at,
            std::string_view text,
            const std::optional<std::string>& separator,
            std::int64_t most);

/// str.replace(); all of them if `most` is negative.
value replace(run& running,
              position at,
              std::string_view text,
              std::string_view old,
              std::string_view with,
              std::int64_t most);

/// str.splitlines().
std::vector<std::string_view> lines_of(std::string_view text, bool keep_ends);

/// The first character large and the others small: str.capitalize().
std::string capitalized(std::string_view text);

} // namespace troupe::compute::chat
