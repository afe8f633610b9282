#include "compute/faults/fault_trace.hpp"

#include "config/log.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <unistd.h>

namespace troupe::compute {

namespace {

std::string begin_of_line(const fault& what, const fault_spot& where) {
  return fmt::format("{} {} at {}:", what.name, to_string(what.what), name_spot(where));
}

} // namespace

fault_trace::fault_trace(std::filesystem::path file, std::uint64_t run) : file_(std::move(file)) {
  if (file_.empty())
    return;
  const auto head = fmt::format("run {:016x}", run);
  std::string found;
  std::ifstream stream{file_};
  if (!std::getline(stream, found) || found != head)
    write(head, true);
}

std::uint64_t fault_trace::count(const fault& what, const fault_spot& where) const {
  const auto begin = begin_of_line(what, where);
  std::uint64_t lines = 0;
  std::ifstream stream{file_};
  for (std::string line; std::getline(stream, line);)
    lines += line.starts_with(begin) ? 1 : 0;
  return lines;
}

void fault_trace::add(const fault& what, const fault_spot& where, const std::string& when) const {
  const auto line = fmt::format("{} {}", begin_of_line(what, where), when);
  log::warn("on purpose: {}", line);
  if (!file_.empty())
    write(line, false);
}

void fault_trace::write(const std::string& line, bool anew) const {
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (anew ? O_TRUNC : 0);
  const int out = ::open(file_.c_str(), flags, 0600);
  const auto text = line + "\n";
  const bool written =
    out >= 0 && ::write(out, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written)
    log::warn("{} cannot be written: {}", file_.string(), std::strerror(errno));
  if (out >= 0)
    ::close(out);
}

} // namespace troupe::compute
