#pragma once
// The rules of the house that a program can check, on the text of one file. Pure functions.

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::tidy {

/// One broken rule.
struct finding {
  std::size_t line = 0; ///< From 1; 0: the whole file.
  std::string what;
};

/// A file of the tree.
struct source {
  std::string path; ///< From the root, with '/'.
  std::string_view text;
};

/// Whether a path from the root exists in the tree.
using exists = std::function<bool(const std::string&)>;

/// Directions (config <- compute <- transport <- actors <- tests), includes from the root, packages
/// in their own folders, heavy headers out of headers and one to a file, #pragma once.
std::vector<finding> check_includes(const source& file, const exists& in_tree);

/// At most 500 lines of at most 100 columns; tables between "clang-format off" and "on" may be
/// wider.
std::vector<finding> check_length(const source& file);

/// Names that say nothing, of files and in code.
std::vector<finding> check_names(const source& file);

/// Paths of the machine that somebody worked on.
std::vector<finding> check_machine_paths(const source& file);

/// All of them that apply to a file of this name.
std::vector<finding> check(const source& file, const exists& in_tree);

} // namespace troupe::tidy
