#include "actors/cli/command.hpp"

#include "actors/faults.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace troupe::cli {

namespace {

sigset_t stop_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    ::sigaddset(&set, number);
  return set;
}

} // namespace

result<cluster_settings> read_cluster(const cluster_options& options, security_files files) {
  auto settings = options.file.empty()
                    ? parse_cluster_text(demo_cluster_text(), "the demo", options.overrides)
                    : read_cluster_file(options.file, options.overrides, files);
  if (settings && !settings->faults.empty())
    if (const auto faults = actors::faults_of(*settings); !faults)
      return faults.error();
  return settings;
}

int fail(const error& what) {
  fmt::print(stderr, "troupe: error: {}\n", what.what);
  return exit_code(what.code);
}

void warn(const std::string& what) {
  fmt::print(stderr, "troupe: warning: {}\n", what);
}

result<void> write_file(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out)
    return error{errc::io_error,
                 fmt::format("{} cannot be written: {}", file.string(), std::strerror(errno))};
  return {};
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> units{"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < units.size(); ++unit)
    value /= 1000;
  if (unit == 0)
    return fmt::format("{} B", bytes);
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, units[unit]);
}

std::string counted(std::uint64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void block_stop_signals() {
  const auto set = stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

int wait_for_stop_signal(std::chrono::milliseconds time) {
  const auto set = stop_signals();
  const timespec wait{time.count() / 1000, time.count() % 1000 * 1'000'000};
  const int number = ::sigtimedwait(&set, nullptr, &wait);
  return number > 0 ? number : 0;
}

} // namespace troupe::cli
