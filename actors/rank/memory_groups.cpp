#include "actors/rank/memory_groups.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors {

namespace {

namespace fs = std::filesystem;

/// Version 1 writes the largest multiple of a page for none.
constexpr std::size_t no_limit = std::size_t{1} << 62;

/// The files in which a version of the hierarchy keeps its numbers.
struct group_files {
  std::vector<const char*> limits; ///< The least counts; absent or "max": none.
  const char* usage;
  std::vector<const char*> droppable; ///< Keys of memory.stat, this group's children included.
};

const group_files version_1{
  {"memory.limit_in_bytes"}, "memory.usage_in_bytes", {"total_active_file", "total_inactive_file"}};
// Above memory.high nothing fails, but everything crawls.
const group_files version_2{
  {"memory.max", "memory.high"}, "memory.current", {"active_file", "inactive_file"}};

/// A hierarchy that counts memory, as this process sees it.
struct hierarchy {
  const group_files* files;
  fs::path top; ///< Where it is mounted.
  fs::path own; ///< This process' group, at or below `top`.
};

std::optional<std::size_t> read_number(const fs::path& file) {
  std::ifstream in{file};
  std::size_t number = 0;
  if (in >> number)
    return number;
  return std::nullopt;
}

std::size_t droppable_bytes(const fs::path& group, const group_files& files) {
  std::ifstream table{group / "memory.stat"};
  std::size_t all = 0;
  std::string key;
  for (std::size_t bytes = 0; table >> key >> bytes;)
    if (std::find(files.droppable.begin(), files.droppable.end(), key) != files.droppable.end())
      all += bytes;
  return all;
}

std::optional<std::size_t> left_in_group(const fs::path& group, const group_files& files) {
  std::optional<std::size_t> limit;
  for (const auto* name : files.limits)
    if (const auto found = read_number(group / name); found && *found < no_limit)
      limit = std::min(limit.value_or(*found), *found);
  const auto used = read_number(group / files.usage);
  if (!limit || !used)
    return std::nullopt;
  const auto held = *used - std::min(*used, droppable_bytes(group, files));
  return *limit - std::min(*limit, held);
}

std::optional<std::size_t> left_in(const hierarchy& all) {
  std::optional<std::size_t> left;
  for (auto group = all.own;; group = group.parent_path()) {
    if (const auto here = left_in_group(group, *all.files))
      left = std::min(left.value_or(*here), *here);
    if (group == all.top || group == group.parent_path())
      return left;
  }
}

/// mountinfo writes a blank or a backslash of a path as \040 or \134.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned char code = 0;
    const auto* digits = text.data() + at + 1;
    if (text[at] == '\\' && at + 3 < text.size()
        && std::from_chars(digits, digits + 3, code, 8).ptr == digits + 3) {
      plain += static_cast<char>(code);
      at += 3;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> found;
  std::istringstream words{list};
  for (std::string one; std::getline(words, one, ',');)
    found.push_back(one);
  return found;
}

/// The group of this process by controller ("memory") in version 1; by "" in version 2.
std::map<std::string, std::string> own_groups(const fs::path& root) {
  std::map<std::string, std::string> found;
  std::ifstream table{root / "proc/self/cgroup"};
  for (std::string line; std::getline(table, line);) { // "4:cpu,memory:/jobs/17", "0::/jobs/17"
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    const auto path = line.substr(second + 1);
    const auto controllers = words_of(line.substr(first + 1, second - first - 1));
    for (const auto& name : controllers)
      found.emplace(name, path);
    if (controllers.empty())
      found.emplace("", path);
  }
  return found;
}

/// A line of mountinfo: "35 31 0:32 <root> <mount point> <options> ... - <type> <source> <more>".
std::optional<hierarchy> read_mount(const std::string& line,
                                    const std::map<std::string, std::string>& groups,
                                    const fs::path& root) {
  const auto dash = line.find(" - ");
  if (dash == std::string::npos)
    return std::nullopt;
  std::istringstream front{line.substr(0, dash)};
  std::istringstream back{line.substr(dash + 3)};
  std::string skipped;
  std::string shown;
  std::string point;
  std::string type;
  std::string options;
  front >> skipped >> skipped >> skipped >> shown >> point;
  back >> type >> skipped >> options;
  const bool second = type == "cgroup2";
  const auto controllers = words_of(options);
  const bool first =
    type == "cgroup"
    && std::find(controllers.begin(), controllers.end(), "memory") != controllers.end();
  if (!first && !second)
    return std::nullopt;
  const auto group = groups.find(second ? "" : "memory");
  if (group == groups.end())
    return std::nullopt;
  const auto top = root / fs::path{unescaped(point)}.relative_path();
  // A container may see its own group as the top, or know itself by a path that is not mounted.
  const auto inside = fs::path{group->second}.lexically_relative(unescaped(shown));
  const bool below = !inside.empty() && *inside.begin() != ".." && *inside.begin() != ".";
  return hierarchy{second ? &version_2 : &version_1, top, below ? top / inside : top};
}

} // namespace

std::optional<std::size_t> memory_left_in_groups(const fs::path& root) {
  const auto groups = own_groups(root);
  std::optional<std::size_t> left;
  std::ifstream mounts{root / "proc/self/mountinfo"};
  for (std::string line; std::getline(mounts, line);) {
    const auto found = read_mount(line, groups, root);
    if (!found)
      continue;
    if (const auto here = left_in(*found))
      left = std::min(left.value_or(*here), *here);
  }
  return left;
}

} // namespace troupe::actors
