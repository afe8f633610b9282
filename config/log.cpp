#include "config/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <atomic>
#include <memory>

namespace troupe::log {

namespace {

constexpr std::array<std::string_view, 6> names{"error", "warn", "info", "debug", "trace", "data"};

std::atomic<level> highest_level{level::warn};

spdlog::logger& sink() {
  static const auto logger = [] {
    auto made = std::make_shared<spdlog::logger>(
      "troupe", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_level(spdlog::level::trace);
    made->flush_on(spdlog::level::trace);
    made->set_pattern("%H:%M:%S.%e %^%v%$");
    return made;
  }();
  return *logger;
}

spdlog::level::level_enum colour_of(level at) {
  switch (at) {
  case level::error: return spdlog::level::err;
  case level::warn: return spdlog::level::warn;
  case level::info: return spdlog::level::info;
  default: return spdlog::level::debug;
  }
}

} // namespace

void start(level highest, std::string who) {
  highest_level.store(highest, std::memory_order_relaxed);
  std::string pattern = "%H:%M:%S.%e ";
  if (!who.empty())
    pattern += who + " ";
  sink().set_pattern(pattern + "%^%v%$");
}

bool parse(std::string_view name, level& out) noexcept {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) {
      out = static_cast<level>(i);
      return true;
    }
  }
  return false;
}

bool enabled(level at) noexcept {
  return at <= highest_level.load(std::memory_order_relaxed);
}

void write(level at, std::string_view line) {
  sink().log(colour_of(at), "{} {}", names[static_cast<std::size_t>(at)], line);
}

} // namespace troupe::log
