#include "compute/tokenizer/utf8.hpp"

#include <utf8proc.h>

namespace troupe::compute::utf8 {

namespace {

/// How a character goes on after its first byte (Unicode 15, table 3-7).
struct continuation {
  std::size_t bytes; ///< Of the whole character; 0: not a first byte.
  unsigned char low, high;
};

constexpr continuation after(unsigned char lead) noexcept {
  if (lead < 0x80)
    return {1, 0, 0};
  if (lead < 0xC2)
    return {0, 0, 0};
  if (lead < 0xE0)
    return {2, 0x80, 0xBF};
  if (lead < 0xF0)
    return {3,
            static_cast<unsigned char>(lead == 0xE0 ? 0xA0 : 0x80),
            static_cast<unsigned char>(lead == 0xED ? 0x9F : 0xBF)};
  if (lead < 0xF5)
    return {4,
            static_cast<unsigned char>(lead == 0xF0 ? 0x90 : 0x80),
            static_cast<unsigned char>(lead == 0xF4 ? 0x8F : 0xBF)};
  return {0, 0, 0};
}

utf8proc_category_t category(char32_t point) noexcept {
  return utf8proc_category(static_cast<utf8proc_int32_t>(point));
}

} // namespace

std::optional<std::size_t> first_invalid_byte(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    auto rule = after(static_cast<unsigned char>(text[at]));
    if (rule.bytes == 0 || at + rule.bytes > text.size())
      return at;
    for (std::size_t next = 1; next < rule.bytes; ++next) {
      auto byte = static_cast<unsigned char>(text[at + next]);
      if (byte < rule.low || byte > rule.high)
        return at;
      rule.low = 0x80;
      rule.high = 0xBF;
    }
    at += rule.bytes;
  }
  return std::nullopt;
}

char32_t first(std::string_view text) noexcept {
  auto byte = [&](std::size_t at) { return static_cast<char32_t>(text[at] & 0x3F); };
  auto lead = static_cast<unsigned char>(text[0]);
  switch (length(text[0])) {
  case 1: return lead;
  case 2: return static_cast<char32_t>(lead & 0x1F) << 6 | byte(1);
  case 3: return static_cast<char32_t>(lead & 0x0F) << 12 | byte(1) << 6 | byte(2);
  default: return static_cast<char32_t>(lead & 0x07) << 18 | byte(1) << 12 | byte(2) << 6 | byte(3);
  }
}

char32_t last(std::string_view text) noexcept {
  std::size_t at = text.size() - 1;
  while (at > 0 && (text[at] & 0xC0) == 0x80)
    --at;
  return first(text.substr(at));
}

void append(std::string& text, char32_t point) {
  utf8proc_uint8_t bytes[4];
  auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(point), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(count));
}

bool is_whitespace(char32_t point) noexcept {
  return (point >= 0x09 && point <= 0x0D) || point == 0x20 || point == 0x85 || point == 0xA0
         || point == 0x1680 || (point >= 0x2000 && point <= 0x200A) || point == 0x2028
         || point == 0x2029 || point == 0x202F || point == 0x205F || point == 0x3000;
}

bool is_numeric(char32_t point) noexcept {
  auto found = category(point);
  return found >= UTF8PROC_CATEGORY_ND && found <= UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t point) noexcept {
  if (point < 0x80)
    return point > 0x20 && point < 0x7F && !(point >= '0' && point <= '9')
           && !((point | 0x20) >= 'a' && (point | 0x20) <= 'z');
  auto found = category(point);
  return found >= UTF8PROC_CATEGORY_PC && found <= UTF8PROC_CATEGORY_PO;
}

bool is_word(char32_t point) noexcept {
  auto found = category(point);
  if (found >= UTF8PROC_CATEGORY_LU && found <= UTF8PROC_CATEGORY_NL)
    return true; // letters, marks, decimal and letter-like numbers
  bool circled = (point >= 0x24B6 && point <= 0x24E9) || (point >= 0x1F130 && point <= 0x1F149)
                 || (point >= 0x1F150 && point <= 0x1F169)
                 || (point >= 0x1F170 && point <= 0x1F189);
  return found == UTF8PROC_CATEGORY_PC || point == 0x200C || point == 0x200D || circled;
}

void assembler::push(std::string_view bytes, std::string& out) {
  for (char next : bytes) {
    auto byte = static_cast<unsigned char>(next);
    if (held_bytes_ > 0 && byte >= next_low_ && byte <= next_high_) {
      held_[held_bytes_++] = next;
      next_low_ = 0x80;
      next_high_ = 0xBF;
      if (held_bytes_ == wanted_bytes_) {
        out.append(held_, held_bytes_);
        held_bytes_ = 0;
      }
      continue;
    }
    replace(out);
    start(byte, out);
  }
}

void assembler::flush(std::string& out) {
  replace(out);
}

void assembler::start(unsigned char lead, std::string& out) {
  auto rule = after(lead);
  held_[0] = static_cast<char>(lead);
  if (rule.bytes == 1) {
    out += held_[0];
    return;
  }
  held_bytes_ = 1;
  wanted_bytes_ = rule.bytes;
  next_low_ = rule.low;
  next_high_ = rule.high;
  if (rule.bytes == 0)
    replace(out);
}

void assembler::replace(std::string& out) {
  std::size_t marks = policy_ == invalid_bytes::one_per_byte ? held_bytes_ : held_bytes_ > 0;
  for (; marks > 0; --marks)
    out += "\xEF\xBF\xBD";
  held_bytes_ = 0;
}

} // namespace troupe::compute::utf8
