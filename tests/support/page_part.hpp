#pragma once
// Figures in pages: a part of a Markdown file between two comments, which a program writes.

#include <filesystem>
#include <optional>
#include <string>

namespace troupe::tests {

/// What follows `-- <name>=` on the test program's command line: `-- page=docs/faults.md`.
std::optional<std::string> test_option(const std::string& name);

/// Whether `-- <name>` is on the command line.
bool has_test_option(const std::string& name);

/// Puts text between `<!-- begin NAME -->` and `<!-- end NAME -->`; ends the test where a page does
/// not have them.
void write_page_part(const std::filesystem::path& page,
                     const std::string& name,
                     const std::string& text);

} // namespace troupe::tests
