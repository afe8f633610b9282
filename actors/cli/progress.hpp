#pragma once
// Progress of long work on standard error: one redrawn line on a terminal, a line every few seconds
// elsewhere. One thread.

#include <chrono>
#include <string>

namespace troupe::cli {

class progress_line {
public:
  /// `silent`: shows nothing at all.
  explicit progress_line(bool silent);
  ~progress_line(); ///< As clear().

  /// The state of the work now; cheap to call often.
  void show(const std::string& text);

  /// Takes the redrawn line away, so that other text can be printed.
  void clear();

private:
  bool silent_;
  bool terminal_;
  bool drawn_ = false;
  std::string last_;
  std::chrono::steady_clock::time_point next_{};
};

} // namespace troupe::cli
