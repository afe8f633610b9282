#pragma once
// The log: one line a fact, "key value" pairs, rank and epoch first. The level says the volume:
// info a run, debug an object, trace a phase transition, data a frame. Any thread may log.

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::log {

enum class level : std::uint8_t { error, warn, info, debug, trace, data };

/// Lines above `highest` are dropped before they are formatted. Lines go to standard error.
/// `who` is printed at the start of each line, for example "node a".
void start(level highest, std::string who);

/// nullopt-free parse for the config reader: returns false on an unknown name.
bool parse(std::string_view name, level& out) noexcept;

bool enabled(level at) noexcept;
void write(level at, std::string_view line);

template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(level::error))
    write(level::error, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(level::warn))
    write(level::warn, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(level::info))
    write(level::info, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(level::debug))
    write(level::debug, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void trace(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(level::trace))
    write(level::trace, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void data(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(level::data))
    write(level::data, fmt::format(format, std::forward<Args>(args)...));
}

} // namespace troupe::log
