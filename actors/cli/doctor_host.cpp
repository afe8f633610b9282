// examine_host and examine_wires (actors/cli/doctor.hpp).
#include "actors/cli/doctor.hpp"
#include "actors/cli/version.hpp"
#include "actors/host/host_memory.hpp"
#include "actors/node/launcher.hpp"
#include "transport/ucx/ucx_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <thread>

namespace troupe::cli {

namespace {

constexpr std::uint64_t least_shared_memory = std::uint64_t{64} << 20;
constexpr std::uint64_t least_files = 1024;

std::string first_line(std::string text) {
  return text.substr(0, text.find('\n'));
}

void examine_shared_memory(findings& found) {
  struct statvfs status {};

  if (::statvfs("/dev/shm", &status) != 0)
    return found.fail(
      "shm", "/dev/shm is not there", "mount it: ranks of one host share memory through it");
  const auto free_bytes = static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
  if (free_bytes < least_shared_memory)
    return found.warn("shm",
                      fmt::format("/dev/shm has {} free", bytes_text(free_bytes)),
                      "give it 64 MB or more (docker run --shm-size=1g), or ranks of one host "
                      "fall back to TCP");
  found.ok("shm", fmt::format("/dev/shm has {} free", bytes_text(free_bytes)));
}

// UCX copies between processes of one host directly (CMA) where the kernel lets it.
void examine_direct_copy(findings& found) {
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  if (scope == 0)
    return found.ok("cma", "processes of one user may copy from each other directly");
  found.warn("cma",
             fmt::format("kernel.yama.ptrace_scope is {}", scope),
             "large tensors between processes of this host take one copy more; "
             "sysctl kernel.yama.ptrace_scope=0 avoids it");
}

void examine_limits(findings& found) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < least_files)
    found.warn("limits",
               fmt::format("{} open files allowed", files.rlim_cur),
               fmt::format("ulimit -n {}", least_files));
  else
    found.ok("limits", fmt::format("{} open files allowed", files.rlim_cur));
}

void examine_cores(const cluster_settings& settings, findings& found) {
  const std::size_t cores = std::max(std::thread::hardware_concurrency(), 1u);
  std::size_t threads = 0;
  std::size_t ranks = 0;
  for (const auto index : actors::nodes_of_this_host(settings)) {
    const auto& node = settings.nodes[index];
    ranks += node.ranks;
    threads += node.threads != 0 ? node.ranks * node.threads : cores;
  }
  const auto text = fmt::format("{} for {} with {} on this host",
                                counted(cores, "core"),
                                counted(ranks, "rank"),
                                counted(threads, "thread"));
  if (threads > cores)
    return found.warn("cores", text, "set node.threads so that threads do not outnumber cores");
  found.ok("cores", text);
}

// transports by device, as UCX names both.
std::map<std::string, std::string> by_device(const std::vector<transport::ucx_device>& devices) {
  std::map<std::string, std::string> grouped;
  for (const auto& one : devices) {
    auto& names = grouped[one.device];
    names += (names.empty() ? "" : " ") + one.transport;
  }
  return grouped;
}

void examine_wanted_devices(const cluster_settings& settings,
                            const std::map<std::string, std::string>& there,
                            findings& found) {
  for (const auto index : actors::nodes_of_this_host(settings)) {
    for (const auto& device : settings.nodes[index].devices) {
      if (there.contains(device))
        continue;
      std::string names;
      for (const auto& [name, transports] : there)
        names += (names.empty() ? "" : ", ") + name;
      found.fail("ucx",
                 settings.point_at(fmt::format("node[{}].devices", index),
                                   fmt::format("UCX finds no device {}", device)),
                 fmt::format("one of {}", names));
    }
  }
}

} // namespace

void examine_host(const cluster_settings& settings, findings& found) {
  utsname kernel{};
  ::uname(&kernel);
  found.ok("program",
           fmt::format("{} on {} {}", first_line(version_text()), kernel.sysname, kernel.release));
  examine_cores(settings, found);
  found.ok("memory",
           fmt::format("{} available to a process", bytes_text(actors::available_memory_bytes())));
  examine_shared_memory(found);
  examine_direct_copy(found);
  examine_limits(found);
  found.ok("clocks", "need not agree with those of other hosts");
}

void examine_wires(const cluster_settings& settings, findings& found) {
  const auto devices = transport::list_ucx_devices();
  if (!devices)
    return found.fail("ucx", devices.error().what, "apt install libucx0; see ucx_info -d");
  const auto there = by_device(*devices);
  std::string text;
  for (const auto& [device, transports] : there)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", device, transports);
  found.ok("ucx", fmt::format("{}: {}", transport::ucx_version(), text));
  examine_wanted_devices(settings, there, found);
}

} // namespace troupe::cli
