#pragma once
// What the control groups (cgroups) of this process leave it: the limit that a container, a service
// or a batch job lives under. Source: the kernel's Documentation/admin-guide, cgroup-v2.rst and
// cgroup-v1/memory.rst. Any thread; no state.

#include <cstddef>
#include <filesystem>
#include <optional>

namespace troupe::actors {

/// Bytes that may still be taken before the tightest limit of a group of this process is met, from
/// its own group up to the top of the hierarchy, of either version. File pages that the kernel
/// would drop count as free. Nullopt: no group has a limit, or the system does not say. `root` is
/// where /proc and the mount points are looked for.
std::optional<std::size_t> memory_left_in_groups(const std::filesystem::path& root = "/");

} // namespace troupe::actors
