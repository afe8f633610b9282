#pragma once
// What somebody probably meant: for unknown keys, sub-commands and names.

#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// The entry of `known` that is closest to `word` in edit distance (a swap of two neighbours counts
/// as one edit), or "" when none is close enough to be a likely misspelling. The first of equals.
std::string nearest(std::string_view word, std::span<const std::string_view> known);

} // namespace troupe
