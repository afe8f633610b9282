#pragma once
// Pages for people (Markdown) as tests read them: their fenced blocks, the commands in them, and
// whether a program prints what the page shows.

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::tests {

/// What stands between two lines of ```.
struct page_block {
  std::size_t line = 0; ///< Of the page, where it opens; from 1.
  std::string section;  ///< The heading that it stands under, without its marks.
  std::string language; ///< Behind the opening marks: "sh", "toml"; may be empty.
  std::vector<std::string> lines;
};

/// A command of a shell block. Over several lines where the shell needs them to end it.
struct page_command {
  std::size_t line = 0;
  std::string section;
  std::string text;                ///< Without "$ " and without a comment behind it.
  std::vector<std::string> output; ///< As the page shows it; empty where it shows none.
};

/// All blocks of a page, in order; ends the test when the page cannot be read.
std::vector<page_block> read_blocks(const std::filesystem::path& page);

/// The commands of a block: of language "sh" every line, of no language those behind "$ ", with
/// the lines that follow as their output. Other blocks have none.
std::vector<page_command> commands_of(const page_block& block);

/// A line without what differs from run to run and from machine to machine: numbers, their units,
/// digests, names of wires, widths of blanks.
std::string shape_of_line(const std::string& line);

/// Why `found` does not have the shape of what the page shows; empty when it does. A line "..."
/// stands for any lines, a line that ends in " ..." for any that begin so.
std::string difference_of_shape(const std::vector<std::string>& shown,
                                const std::vector<std::string>& found);

} // namespace troupe::tests
