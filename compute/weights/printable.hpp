#pragma once
// Text of unknown origin in a message for people: what is not printable ASCII becomes an escape.

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::compute {

/// At most `limit` characters of `text`, with escapes such as \x1f, and "..." where it was cut.
std::string printable(std::string_view text, std::size_t limit = 80);

} // namespace troupe::compute
