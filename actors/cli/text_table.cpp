#include "actors/cli/text_table.hpp"

#include "config/check.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::cli {

void text_table::add(std::vector<std::string> row) {
  check(row.size() == columns_.size(), "a row of a table has a cell for each column");
  rows_.push_back(std::move(row));
}

std::string text_table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(columns_[c].title.size());
    for (const auto& row : rows_)
      widths[c] = std::max(widths[c], row[c].size());
  }
  std::string all;
  const auto add_line = [&](const auto& cell_of) {
    std::string line;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string_view cell = cell_of(c);
      const auto gap = c == 0 ? "" : "  ";
      line += columns_[c].align == side::right ? fmt::format("{}{:>{}}", gap, cell, widths[c])
                                               : fmt::format("{}{:<{}}", gap, cell, widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    all += line + "\n";
  };
  add_line([&](std::size_t c) { return columns_[c].title; });
  for (const auto& row : rows_)
    add_line([&](std::size_t c) { return std::string_view(row[c]); });
  return all;
}

} // namespace troupe::cli
