#include "transport/host_identity.hpp"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

namespace troupe::transport {

namespace {

/// Where the kernel hides them, a value of this process alone: nobody shares memory by mistake.
std::string own_value() {
  return fmt::format("unknown-{}", ::getpid());
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id.empty() ? own_value() : id;
}

std::string name_space(const char* which) {
  std::array<char, 64> target;
  const auto path = fmt::format("/proc/self/ns/{}", which);
  const auto length = ::readlink(path.c_str(), target.data(), target.size());
  return length <= 0 ? own_value() : std::string(target.data(), static_cast<std::size_t>(length));
}

/// UCX_TLS names transports or groups of them; a '^' in front takes away what it names.
bool through_memory(std::string_view transports) {
  constexpr std::array<std::string_view, 8> memory{
    "all", "sm", "shm", "mm", "posix", "sysv", "xpmem", "cma"};
  const bool takes_away = transports.starts_with('^');
  if (takes_away)
    transports.remove_prefix(1);
  bool named = false;
  while (!transports.empty()) {
    const auto end = std::min(transports.find(','), transports.size());
    named |= std::find(memory.begin(), memory.end(), transports.substr(0, end)) != memory.end();
    transports.remove_prefix(std::min(end + 1, transports.size()));
  }
  return named != takes_away;
}

} // namespace

std::string host_identity() {
  return fmt::format(
    "boot:{} {} {} uid:{}", boot_id(), name_space("pid"), name_space("user"), ::geteuid());
}

std::string memory_domain(std::string_view transports) {
  auto identity = host_identity();
  if (transports.empty() || through_memory(transports))
    return identity;
  return fmt::format("{} process:{}", identity, ::getpid());
}

} // namespace troupe::transport
