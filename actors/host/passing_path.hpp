#pragma once
// A file or folder for a while.

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace troupe::actors {

/// A path below the system's folder for such things, of this process alone; what is there goes away
/// with it.
class passing_path {
public:
  /// "troupe-<name>", with the process in it. Nothing is made yet.
  explicit passing_path(std::string_view name)
    : path_(std::filesystem::temp_directory_path()
            / fmt::format("troupe-{}-{}", ::getpid(), name)) {}

  passing_path(passing_path&& other) noexcept : path_(std::exchange(other.path_, {})) {}

  passing_path& operator=(passing_path&&) = delete;

  ~passing_path() {
    std::error_code ignored;
    if (!path_.empty())
      std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const noexcept { return path_; }

private:
  std::filesystem::path path_;
};

} // namespace troupe::actors
