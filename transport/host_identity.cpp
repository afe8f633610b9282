#include "transport/host_identity.hpp"

#include <fmt/core.h>

#include <unistd.h>

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

} // namespace

std::string host_identity() {
  return fmt::format(
    "boot:{} {} {} uid:{}", boot_id(), name_space("pid"), name_space("user"), ::geteuid());
}

} // namespace troupe::transport
