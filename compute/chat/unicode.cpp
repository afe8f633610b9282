#include "compute/chat/unicode.hpp"

#include "compute/tokenizer/utf8.hpp"

#include <utf8proc.h>

#include <algorithm>

namespace troupe::compute::chat {

namespace {

utf8proc_category_t category(char32_t point) noexcept {
  return utf8proc_category(static_cast<utf8proc_int32_t>(point));
}

bool is_letter(char32_t point) noexcept {
  auto found = category(point);
  return found >= UTF8PROC_CATEGORY_LU && found <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t point) noexcept {
  return category(point) == UTF8PROC_CATEGORY_ND;
}

std::size_t last_character(std::string_view text) noexcept {
  std::size_t at = text.size() - 1;
  while (at > 0 && (text[at] & 0xC0) == 0x80)
    --at;
  return at;
}

template <class Is>
bool all(std::string_view text, Is is) noexcept {
  if (text.empty())
    return false;
  for (; !text.empty(); text.remove_prefix(utf8::length(text[0])))
    if (!is(utf8::first(text)))
      return false;
  return true;
}

template <class Map>
std::string mapped(std::string_view text, Map map) {
  std::string out;
  for (; !text.empty(); text.remove_prefix(utf8::length(text[0])))
    utf8::append(out, static_cast<char32_t>(map(static_cast<utf8proc_int32_t>(utf8::first(text)))));
  return out;
}

template <class Wrong, class Right>
bool has_case(std::string_view text, Wrong wrong, Right right) noexcept {
  bool any = false;
  for (; !text.empty(); text.remove_prefix(utf8::length(text[0]))) {
    auto found = category(utf8::first(text));
    if (found == wrong || found == UTF8PROC_CATEGORY_LT)
      return false;
    any |= found == right;
  }
  return any;
}

} // namespace

bool is_space(char32_t point) noexcept {
  return utf8::is_whitespace(point) || (point >= 0x1C && point <= 0x1F);
}

std::string_view trim_start(std::string_view text) noexcept {
  while (!text.empty() && is_space(utf8::first(text)))
    text.remove_prefix(utf8::length(text[0]));
  return text;
}

std::string_view trim_end(std::string_view text) noexcept {
  while (!text.empty() && is_space(utf8::last(text)))
    text.remove_suffix(text.size() - last_character(text));
  return text;
}

std::string_view trim_start(std::string_view text, std::optional<std::string_view> characters) {
  if (!characters)
    return trim_start(text);
  while (!text.empty()
         && characters->find(text.substr(0, utf8::length(text[0]))) != std::string_view::npos)
    text.remove_prefix(utf8::length(text[0]));
  return text;
}

std::string_view trim_end(std::string_view text, std::optional<std::string_view> characters) {
  if (!characters)
    return trim_end(text);
  while (!text.empty()
         && characters->find(text.substr(last_character(text))) != std::string_view::npos)
    text.remove_suffix(text.size() - last_character(text));
  return text;
}

std::size_t count_characters(std::string_view text) noexcept {
  return static_cast<std::size_t>(
    std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (; !text.empty(); text.remove_prefix(utf8::length(text[0])))
    out.push_back(text.substr(0, utf8::length(text[0])));
  return out;
}

std::string to_upper(std::string_view text) {
  constexpr std::string_view sharp_s = "\u00DF";
  std::string made;
  for (std::size_t at = 0; (at = text.find(sharp_s)) != text.npos;) {
    made += mapped(text.substr(0, at), utf8proc_toupper) + "SS";
    text.remove_prefix(at + sharp_s.size());
  }
  return made + mapped(text, utf8proc_toupper);
}

std::string to_lower(std::string_view text) {
  return mapped(text, utf8proc_tolower);
}

bool all_letters(std::string_view text) noexcept {
  return all(text, is_letter);
}

bool all_digits(std::string_view text) noexcept {
  return all(text, is_decimal);
}

bool all_letters_or_digits(std::string_view text) noexcept {
  return all(text, [](char32_t point) { return is_letter(point) || utf8::is_numeric(point); });
}

bool all_spaces(std::string_view text) noexcept {
  return all(text, is_space);
}

bool is_upper(std::string_view text) noexcept {
  return has_case(text, UTF8PROC_CATEGORY_LL, UTF8PROC_CATEGORY_LU);
}

bool is_lower(std::string_view text) noexcept {
  return has_case(text, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LL);
}

} // namespace troupe::compute::chat
