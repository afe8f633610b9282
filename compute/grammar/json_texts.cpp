#include "compute/grammar/json_texts.hpp"

#include <string_view>

namespace troupe::compute {

namespace {

using node_id = grammar::node_id;

constexpr std::size_t most_digits = 15;

/// The rest of a character of UTF-8 after its first byte: Unicode 15, table 3-7.
void add_continuation(grammar_builder& to, node_id from, std::size_t bytes, node_id end) {
  for (; bytes > 1; --bytes) {
    auto next = to.node();
    to.bytes(from, 0x80, 0xBF, next);
    from = next;
  }
  to.bytes(from, 0x80, 0xBF, end);
}

void add_wide_characters(grammar_builder& to, node_id from, node_id end) {
  struct form {
    std::uint8_t first, last, low, high; ///< Of the first byte, and of the second.
    std::size_t more;                    ///< Bytes behind the second.
  };

  static constexpr form forms[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 0},
    {0xE0, 0xE0, 0xA0, 0xBF, 1},
    {0xE1, 0xEC, 0x80, 0xBF, 1},
    {0xED, 0xED, 0x80, 0x9F, 1},
    {0xEE, 0xEF, 0x80, 0xBF, 1},
    {0xF0, 0xF0, 0x90, 0xBF, 2},
    {0xF1, 0xF3, 0x80, 0xBF, 2},
    {0xF4, 0xF4, 0x80, 0x8F, 2},
  };
  for (const auto& one : forms) {
    auto second = to.node();
    to.bytes(from, one.first, one.last, second);
    if (one.more == 0) {
      to.bytes(second, one.low, one.high, end);
      continue;
    }
    auto third = to.node();
    to.bytes(second, one.low, one.high, third);
    add_continuation(to, third, one.more, end);
  }
}

void add_hex_digit(grammar_builder& to, node_id from, node_id end) {
  to.bytes(from, '0', '9', end);
  to.bytes(from, 'a', 'f', end);
  to.bytes(from, 'A', 'F', end);
}

/// Four digits that are no surrogate.
void add_unicode_escape(grammar_builder& to, node_id from, node_id end) {
  auto second = to.node(), after_d = to.node(), third = to.node(), fourth = to.node();
  to.bytes(from, '0', '9', second);
  to.bytes(from, 'a', 'c', second);
  to.bytes(from, 'A', 'C', second);
  to.bytes(from, 'e', 'f', second);
  to.bytes(from, 'E', 'F', second);
  to.byte(from, 'd', after_d);
  to.byte(from, 'D', after_d);
  to.bytes(after_d, '0', '7', third);
  add_hex_digit(to, second, third);
  add_hex_digit(to, third, fourth);
  add_hex_digit(to, fourth, end);
}

/// At least one digit, at most `most`.
void add_digits(grammar_builder& to, node_id from, std::size_t most, node_id end) {
  for (std::size_t digit = 0; digit < most; ++digit) {
    auto next = to.node();
    to.bytes(from, '0', '9', next);
    to.jump(next, end);
    from = next;
  }
}

} // namespace

node_id add_character_rule(grammar_builder& to) {
  auto start = to.node(), end = to.node(), escape = to.node(), unicode = to.node();
  to.bytes(start, 0x20, 0x21, end);
  to.bytes(start, 0x23, 0x5B, end);
  to.bytes(start, 0x5D, 0x7F, end);
  add_wide_characters(to, start, end);
  to.byte(start, '\\', escape);
  for (char one : std::string_view("\"\\/bfnrt"))
    to.byte(escape, one, end);
  to.byte(escape, 'u', unicode);
  add_unicode_escape(to, unicode, end);
  to.end(end);
  return start;
}

void add_string(grammar_builder& to,
                node_id from,
                node_id end,
                node_id one_character,
                std::size_t least,
                std::optional<std::size_t> most) {
  auto inside = to.node();
  to.byte(from, '"', inside);
  for (std::size_t count = 0; count < least && !to.full(); ++count) {
    auto next = to.node();
    to.call(inside, one_character, next);
    inside = next;
  }
  if (!most)
    to.call(inside, one_character, inside);
  for (std::size_t count = least; most && count < *most && !to.full(); ++count) {
    to.byte(inside, '"', end);
    auto next = to.node();
    to.call(inside, one_character, next);
    inside = next;
  }
  to.byte(inside, '"', end);
}

void add_integer(grammar_builder& to, node_id from, node_id end) {
  auto first = to.node(), more = to.node();
  to.jump(from, first);
  to.byte(from, '-', first);
  to.byte(first, '0', end);
  to.bytes(first, '1', '9', more);
  to.jump(more, end);
  add_digits(to, more, most_digits - 1, end);
}

void add_number(grammar_builder& to, node_id from, node_id end) {
  auto whole = to.node(), point = to.node(), fraction = to.node();
  add_integer(to, from, whole);
  to.jump(whole, end);
  to.byte(whole, '.', point);
  add_digits(to, point, most_digits, fraction);
  to.jump(fraction, end);
  auto exponent = to.node(), digits = to.node();
  for (auto before : {whole, fraction})
    for (char one : std::string_view("eE"))
      to.byte(before, one, exponent);
  to.jump(exponent, digits);
  to.byte(exponent, '+', digits);
  to.byte(exponent, '-', digits);
  add_digits(to, digits, 2, end);
}

void add_separator(grammar_builder& to, node_id from, char separator, node_id end) {
  auto after = to.node();
  to.byte(from, separator, after);
  to.byte(after, ' ', end);
  to.jump(after, end);
}

any_rules add_any_rules(grammar_builder& to, node_id one_character) {
  any_rules made{to.node(), to.node(), to.node()};
  auto end = to.node();
  to.end(end);
  for (auto word : {"true", "false", "null"})
    to.text(made.value, word, end);
  add_number(to, made.value, end);
  add_string(to, made.value, end, one_character, 0, std::nullopt);
  to.call(made.value, made.object, end);
  to.call(made.value, made.array, end);

  auto first_key = to.node(), key = to.node(), colon = to.node(), content = to.node();
  auto after_entry = to.node(), object_end = to.node();
  to.byte(made.object, '{', first_key);
  to.byte(first_key, '}', object_end);
  to.jump(first_key, key);
  add_string(to, key, colon, one_character, 0, std::nullopt);
  add_separator(to, colon, ':', content);
  to.call(content, made.value, after_entry);
  add_separator(to, after_entry, ',', key);
  to.byte(after_entry, '}', object_end);
  to.end(object_end);

  auto first_item = to.node(), item = to.node(), after_item = to.node(), array_end = to.node();
  to.byte(made.array, '[', first_item);
  to.byte(first_item, ']', array_end);
  to.jump(first_item, item);
  to.call(item, made.value, after_item);
  add_separator(to, after_item, ',', item);
  to.byte(after_item, ']', array_end);
  to.end(array_end);
  return made;
}

} // namespace troupe::compute
