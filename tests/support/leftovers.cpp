#include "tests/support/leftovers.hpp"

#include "transport/ucx/segment_folder.hpp"

#include <fmt/format.h>

#include <charconv>
#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <unistd.h>

namespace troupe::tests {

namespace fs = std::filesystem;

namespace {

std::size_t count_in(const fs::path& folder) {
  std::error_code gone;
  const fs::directory_iterator begin{folder, gone};
  return gone ? 0 : static_cast<std::size_t>(std::distance(begin, fs::directory_iterator{}));
}

bool is_alive(pid_t process) {
  return ::kill(process, 0) == 0;
}

} // namespace

holdings held_by(pid_t process) {
  const auto folder = fs::path{"/proc"} / std::to_string(process);
  holdings found;
  found.descriptors = count_in(folder / "fd");
  found.threads = count_in(folder / "task");
  std::ifstream in{folder / "status"};
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmRSS:"))
      found.memory_kb = std::stoull(line.substr(6));
  return found;
}

std::set<pid_t> processes_with(const std::string& text) {
  std::set<pid_t> found;
  for (const auto& entry : fs::directory_iterator{"/proc"}) {
    const auto name = entry.path().filename().string();
    pid_t process = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), process).ec != std::errc{}
        || process == ::getpid())
      continue;
    std::ifstream in{entry.path() / "cmdline"};
    const std::string words{std::istreambuf_iterator<char>(in), {}};
    if (words.find(text) != std::string::npos)
      found.insert(process);
  }
  return found;
}

std::string shared_memory_left_by(const std::set<pid_t>& processes) {
  transport::sweep_segment_folders(); // as the next process that starts would
  std::string left;
  std::ifstream in{"/proc/sysvipc/shm"};
  std::string line;
  std::getline(in, line); // the names of the columns
  while (std::getline(in, line)) {
    std::istringstream columns{line};
    std::uint64_t key = 0, id = 0, rights = 0, bytes = 0, maker = 0, last = 0, attached = 0;
    columns >> key >> id >> rights >> bytes >> maker >> last >> attached;
    const auto process = static_cast<pid_t>(maker);
    if (attached == 0 && processes.contains(process) && !is_alive(process))
      left += fmt::format("segment {} of {} bytes, made by process {}; ", id, bytes, process);
  }
  return left;
}

std::size_t entries_below(const fs::path& folder) {
  std::error_code gone;
  const fs::recursive_directory_iterator begin{folder, gone};
  return gone ? 0
              : static_cast<std::size_t>(std::distance(begin, fs::recursive_directory_iterator{}));
}

} // namespace troupe::tests
