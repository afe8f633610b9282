#pragma once
// The words and units that settings are written with; shared by setting_read.cpp and
// setting_write.cpp.

#include "config/dtype.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::setting_words {

template <class... Functions>
struct overloaded : Functions... {
  using Functions::operator()...;
};

template <class... Functions>
overloaded(Functions...) -> overloaded<Functions...>;

inline constexpr std::array<dtype, 5> dtypes{
  dtype::f32, dtype::f16, dtype::bf16, dtype::int8, dtype::int4};
/// The first of them, for what is sent.
inline constexpr std::array<std::string_view, 3> dtype_names{"f32", "f16", "bf16"};
/// All of them, for what is held, behind the word for none.
inline constexpr std::array<std::string_view, 6> held_dtype_names{
  "auto", "f32", "f16", "bf16", "int8", "int4"};

/// In the order of log::level.
inline constexpr std::array<std::string_view, 6> levels{
  "error", "warn", "info", "debug", "trace", "data"};

struct unit {
  std::string_view name;
  std::uint64_t bytes;
};

inline constexpr std::array<unit, 9> units{{{"TiB", 1ull << 40},
                                            {"GiB", 1ull << 30},
                                            {"MiB", 1ull << 20},
                                            {"KiB", 1ull << 10},
                                            {"TB", 1'000'000'000'000ull},
                                            {"GB", 1'000'000'000ull},
                                            {"MB", 1'000'000ull},
                                            {"kB", 1'000ull},
                                            {"B", 1ull}}};

/// A basic string of TOML, in quotes.
std::string toml_string(std::string_view text);

} // namespace troupe::setting_words
