#pragma once
// Aligned text tables.

#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

/// Columns as wide as their widest cell, two spaces between them, numbers to the right.
class text_table {
public:
  enum class side : bool { left, right };

  struct column {
    std::string_view title;
    side align = side::left;
  };

  explicit text_table(std::vector<column> columns) : columns_(std::move(columns)) {}

  /// One cell a column (check).
  void add(std::vector<std::string> row);

  /// Title line and rows, each ended by a newline, without blanks at line ends.
  std::string text() const;

private:
  std::vector<column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

} // namespace troupe::cli
