#pragma once
// Where in a cluster file or a command line something was said, and messages that point at it.

#include "config/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A place in a cluster file or in a command line, kept so that later checks (a plan that does not
/// fit the model, a port that is taken) can still point at the key that asked for it.
struct source_mark {
  std::string name;       ///< The file as it was given, or "--set" for the command line.
  std::size_t line = 0;   ///< First line is 1; 0 for the command line.
  std::size_t column = 1; ///< First byte of a line is 1.
  std::size_t length = 1; ///< Bytes underlined.
  std::string text;       ///< The whole line, or the whole option.

  bool on_command_line() const noexcept { return line == 0; }

  /// "cluster.toml:12" or "--set model.context=4096".
  std::string place() const;

  /// The line with carets and `comment` below the marked bytes:
  ///    |
  ///  7 | contxt = 4096
  ///    | ^^^^^^ did you mean "context"?
  std::string excerpt(std::string_view comment) const;
};

/// "cluster.toml:7: <message>" followed by the excerpt with `comment`.
std::string point(const source_mark& mark, std::string_view message, std::string_view comment);

/// The mistakes found in one reading. All are counted, the first ten are told.
class mistakes {
public:
  static constexpr std::size_t told_at_most = 10;

  void add(std::string message);

  bool none() const noexcept { return count_ == 0; }

  /// errc::invalid_config with the messages, one below the other. Needs at least one (check).
  error to_error() const;

private:
  std::vector<std::string> messages_;
  std::size_t count_ = 0;
};

} // namespace troupe
