#include "actors/host/host_memory.hpp"

#include "actors/rank/memory_groups.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace troupe::actors {

namespace {

std::size_t available_on_host() {
  std::ifstream table{"/proc/meminfo"};
  std::string key;
  std::size_t kibibytes = 0;
  while (table >> key >> kibibytes) {
    if (key == "MemAvailable:")
      return kibibytes * 1024;
    table.ignore(64, '\n');
  }
  return 0;
}

std::size_t address_space_in_use() {
  std::ifstream table{"/proc/self/statm"};
  std::size_t pages = 0;
  table >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// 0 stands for "not known", so nothing left is one byte.
std::size_t smaller(std::size_t bytes, std::size_t left) {
  left = std::max<std::size_t>(left, 1);
  return bytes == 0 ? left : std::min(bytes, left);
}

} // namespace

std::size_t available_memory_bytes() {
  auto bytes = available_on_host();
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    const auto used = address_space_in_use();
    bytes = smaller(bytes, limit.rlim_cur > used ? limit.rlim_cur - used : 0);
  }
  if (const auto left = memory_left_in_groups())
    bytes = smaller(bytes, *left);
  return bytes;
}

} // namespace troupe::actors
