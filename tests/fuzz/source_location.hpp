#pragma once
// Included before everything in builds for libFuzzer: std::source_location for a clang that the
// standard library gives none, because it lacks the builtin. As much of it as check() uses.

#include <version>

#if !__has_builtin(__builtin_source_location)

#include <cstdint>

namespace std {

struct source_location {
  static constexpr source_location current(const char* file = __builtin_FILE(),
                                           const char* function = __builtin_FUNCTION(),
                                           uint_least32_t line = __builtin_LINE()) noexcept {
    return {file, function, line};
  }

  constexpr const char* file_name() const noexcept { return file_; }

  constexpr const char* function_name() const noexcept { return function_; }

  constexpr uint_least32_t line() const noexcept { return line_; }

  constexpr uint_least32_t column() const noexcept { return 0; }

  const char* file_ = "";
  const char* function_ = "";
  uint_least32_t line_ = 0;
};

} // namespace std

#endif
