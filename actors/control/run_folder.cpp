#include "actors/control/run_folder.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace troupe::actors {

namespace fs = std::filesystem;

namespace {

error failed(std::string_view what, const fs::path& where) {
  return {errc::io_error, fmt::format("{} {}: {}", what, where.string(), std::strerror(errno))};
}

// Makes the folder for this user alone. In /tmp anybody could have made it before us.
result<void> make_private(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return failed("cannot make the folder", folder);

  struct stat status {};

  if (::lstat(folder.c_str(), &status) != 0)
    return failed("cannot look at", folder);
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::getuid() || (status.st_mode & 077) != 0)
    return error{errc::io_error,
                 fmt::format("{} is not a folder of this user alone (mode 700); remove it, or set "
                             "XDG_RUNTIME_DIR to a folder that is yours",
                             folder.string())};
  return {};
}

fs::path base_folder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const fs::path place = runtime != nullptr && *runtime == '/' ? runtime : "/tmp";
  return place / fmt::format("troupe-{}", ::getuid());
}

// One spelling for each cluster file; a text that is no file, such as the demo, goes by its name.
std::string hash_of(const cluster_settings& settings) {
  std::error_code no_file;
  const auto path = fs::canonical(settings.file, no_file);
  const auto text = no_file ? settings.file : path.string();
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

// Start time of a process in clock ticks since boot, field 22 of /proc/<pid>/stat; 0 when it is
// gone, or dead and only waits to be reaped. With it a process number that was given away again is
// told apart.
std::uint64_t start_of(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(in, line);
  const auto name_end = line.rfind(')'); // The name may hold blanks and parentheses.
  if (name_end == std::string::npos)
    return 0;
  std::istringstream rest(line.substr(name_end + 1));
  std::string field;
  for (int i = 3; i < 22; ++i) {
    rest >> field;
    if (i == 3 && (field == "Z" || field == "X"))
      return 0;
  }
  std::uint64_t started = 0;
  rest >> started;
  return started;
}

// "<hash>-<pid>-<start>": the folders of processes that were killed are swept by the next one.
void sweep(const fs::path& base) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(base, ignored)) {
    const auto name = entry.path().filename().string();
    char hash[17];
    int pid = 0;
    unsigned long long started = 0;
    if (std::sscanf(name.c_str(), "%16[0-9a-f]-%d-%llu", hash, &pid, &started) == 3
        && start_of(pid) != started)
      fs::remove_all(entry.path(), ignored);
  }
}

} // namespace

fs::path run_folder_for(const cluster_settings& settings) {
  return base_folder() / hash_of(settings);
}

result<void> make_run_folder(const fs::path& folder) {
  if (auto made = make_private(folder.parent_path()); !made)
    return made.error();
  return make_private(folder);
}

result<fs::path> make_unique_run_folder(const cluster_settings& settings) {
  static int counter = 0;
  const auto base = base_folder();
  sweep(base);
  const auto pid = ::getpid();
  auto folder = base / fmt::format("{}-{}-{}-{}", hash_of(settings), pid, start_of(pid), counter++);
  if (auto made = make_run_folder(folder); !made)
    return made.error();
  return folder;
}

namespace {

// The file may have been taken away between opening and locking it: then it is another one now.
bool is_still_there(int file, const fs::path& path) {
  struct stat opened {};

  struct stat there {};

  return ::fstat(file, &opened) == 0 && ::stat(path.c_str(), &there) == 0
         && opened.st_ino == there.st_ino;
}

error held_by_other(const fs::path& folder) {
  const auto other = read_control(folder);
  return {errc::not_now,
          fmt::format("a head of this cluster runs already on this host{}",
                      other ? fmt::format(": node {}, process {}", other->node, other->pid)
                            : std::string())};
}

} // namespace

result<control_file> control_file::claim(const fs::path& folder) {
  if (auto made = make_run_folder(folder); !made)
    return made.error();
  const auto lock = folder / "lock";
  control_file made;
  do {
    if (made.lock_ >= 0)
      ::close(made.lock_);
    made.lock_ = ::open(lock.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (made.lock_ < 0)
      return failed("cannot open", lock);
    if (::flock(made.lock_, LOCK_EX | LOCK_NB) != 0)
      return errno == EWOULDBLOCK ? held_by_other(folder) : failed("cannot lock", lock);
  } while (!is_still_there(made.lock_, lock));
  made.folder_ = folder; // From here on the destructor cleans up.
  return made;
}

control_file::control_file(control_file&& other) noexcept {
  *this = std::move(other);
}

control_file& control_file::operator=(control_file&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(lock_, other.lock_);
  return *this;
}

control_file::~control_file() {
  if (!folder_.empty()) {
    for (const auto* name : {"control.json", "lock"})
      ::unlink((folder_ / name).c_str());
    ::rmdir(folder_.c_str()); // Stays where logs are in it: whoever wrote them removes it.
  }
  if (lock_ >= 0)
    ::close(lock_);
}

result<void> control_file::write(control_point point) {
  point.pid = ::getpid();
  point.started = start_of(point.pid);
  const nlohmann::json content{{"port", point.port},
                               {"cluster", point.cluster},
                               {"node", point.node},
                               {"url", point.url},
                               {"pid", point.pid},
                               {"started", point.started}};
  const auto whole = folder_ / "control.json.new";
  {
    std::ofstream out(whole, std::ios::trunc);
    out << content.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    out.flush();
    if (!out)
      return failed("cannot write", whole);
  }
  if (::rename(whole.c_str(), (folder_ / "control.json").c_str()) != 0)
    return failed("cannot rename", whole);
  return {};
}

result<control_point> read_control(const fs::path& folder) {
  const auto file = folder / "control.json";
  std::ifstream in(file);
  if (!in)
    return error{
      errc::not_found,
      fmt::format("no head of this cluster runs on this host ({} is not there)", file.string())};
  const auto content = nlohmann::json::parse(in, nullptr, false);
  control_point found;
  try {
    found.port = content.at("port").get<std::uint16_t>();
    found.cluster = content.at("cluster").get<std::string>();
    found.node = content.at("node").get<std::string>();
    found.url = content.at("url").get<std::string>();
    found.pid = content.at("pid").get<pid_t>();
    found.started = content.at("started").get<std::uint64_t>();
  } catch (const nlohmann::json::exception& mistake) {
    return error{errc::io_error, fmt::format("{}: {}", file.string(), mistake.what())};
  }
  if (found.started == 0 || start_of(found.pid) != found.started)
    return error{errc::not_found,
                 fmt::format("the head of this cluster, process {}, is gone", found.pid)};
  return found;
}

void remove_run_folder(const fs::path& folder) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

} // namespace troupe::actors
