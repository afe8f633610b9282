#include "transport/ucx/segment_folder.hpp"

#include <fmt/core.h>

#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

namespace troupe::transport {

namespace {

namespace fs = std::filesystem;

std::string begin_of_name() {
  return fmt::format("troupe-{}-", ::getuid());
}

/// A lock on a folder, or -1 while another process has it.
int try_lock(const fs::path& folder) {
  const int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (handle >= 0 && ::flock(handle, LOCK_EX | LOCK_NB) == 0)
    return handle;
  if (handle >= 0)
    ::close(handle);
  return -1;
}

class held_folder {
public:
  held_folder() {
    sweep_segment_folders();
    auto name = "/dev/shm/" + begin_of_name() + "XXXXXX";
    if (::mkdtemp(name.data()) == nullptr)
      return;
    lock_ = try_lock(name);
    if (lock_ >= 0) // else a sweep was faster
      path_ = name;
  }

  ~held_folder() {
    std::error_code ignored;
    if (!path_.empty())
      fs::remove_all(path_, ignored);
    if (lock_ >= 0)
      ::close(lock_);
  }

  held_folder(const held_folder&) = delete;
  held_folder& operator=(const held_folder&) = delete;

  const fs::path& path() const { return path_; }

private:
  fs::path path_;
  int lock_ = -1;
};

} // namespace

void sweep_segment_folders() {
  std::error_code wrong;
  for (fs::directory_iterator entry{"/dev/shm", wrong}, end; !wrong && entry != end;
       entry.increment(wrong)) {
    if (!entry->path().filename().string().starts_with(begin_of_name()))
      continue;
    const int lock = try_lock(entry->path());
    if (lock < 0)
      continue;
    std::error_code ignored;
    fs::remove_all(entry->path(), ignored);
    ::close(lock);
  }
}

const fs::path& segment_folder() {
  static const held_folder folder;
  return folder.path();
}

} // namespace troupe::transport
