#include "compute/tokenizer/byte_level.hpp"

#include "compute/tokenizer/utf8.hpp"

#include <array>

namespace troupe::compute::byte_level {

namespace {

constexpr bool stays(unsigned byte) noexcept {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/// All code points in use lie below 0x100 + 68.
constexpr unsigned end = 0x144;

struct tables {
  std::array<char32_t, 256> point{};
  std::array<int, end> byte{};
};

constexpr tables make() {
  tables made;
  made.byte.fill(-1);
  char32_t spare = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    made.point[byte] = stays(byte) ? byte : spare++;
    made.byte[made.point[byte]] = static_cast<int>(byte);
  }
  return made;
}

constexpr tables spelling = make();

} // namespace

void spell(std::string_view bytes, std::string& out) {
  for (char byte : bytes) {
    char32_t point = spelling.point[static_cast<unsigned char>(byte)];
    if (point < 0x80) {
      out += static_cast<char>(point);
    } else { // all fit two bytes
      out += static_cast<char>(0xC0 | point >> 6);
      out += static_cast<char>(0x80 | (point & 0x3F));
    }
  }
}

std::string unspell(std::string_view piece) {
  std::string bytes;
  for (auto rest = piece; !rest.empty(); rest.remove_prefix(utf8::length(rest[0]))) {
    char32_t point = utf8::first(rest);
    if (point >= end || spelling.byte[point] < 0)
      return std::string(piece);
    bytes += static_cast<char>(spelling.byte[point]);
  }
  return bytes;
}

} // namespace troupe::compute::byte_level
