#include "actors/cli/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

namespace troupe::cli {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds redraw_period{100};
constexpr std::chrono::seconds line_period{3};

std::size_t terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

} // namespace

progress_line::progress_line(bool silent)
  : silent_(silent), terminal_(::isatty(STDERR_FILENO) == 1) {}

progress_line::~progress_line() {
  clear();
}

void progress_line::show(const std::string& text) {
  if (silent_ || text == last_ || clock::now() < next_)
    return;
  last_ = text;
  if (!terminal_) {
    fmt::print(stderr, "{}\n", text);
    next_ = clock::now() + line_period;
    return;
  }
  fmt::print(stderr, "\r\033[K{}", text.substr(0, terminal_columns() - 1));
  std::fflush(stderr);
  drawn_ = true;
  next_ = clock::now() + redraw_period;
}

void progress_line::clear() {
  if (drawn_)
    fmt::print(stderr, "\r\033[K");
  drawn_ = false;
  last_.clear();
}

} // namespace troupe::cli
