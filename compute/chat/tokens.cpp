#include "compute/chat/tokens.hpp"

#include "compute/chat/unicode.hpp"
#include "compute/tokenizer/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace troupe::compute::chat {

error error_at(position where, std::string_view sentence, errc code) {
  return {code, fmt::format("line {}, column {}: {}", where.line, where.column, sentence)};
}

namespace {

/// With "\n" for every line end, and without one at the end.
std::string with_plain_lines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t at = 0; at < source.size(); ++at) {
    if (source[at] != '\r')
      out += source[at];
    else if (at + 1 == source.size() || source[at + 1] != '\n')
      out += '\n';
  }
  if (out.ends_with('\n'))
    out.pop_back();
  return out;
}

bool is_name_start(char byte) noexcept {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

bool is_digit(char byte) noexcept {
  return byte >= '0' && byte <= '9';
}

bool is_hex_digit(char byte) noexcept {
  return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

class cutter {
public:
  explicit cutter(std::string_view source) : source_(source) {}

  result<std::vector<token>> cut() {
    while (at_ < source_.size() && !problem_)
      cut_text();
    add(token_kind::end, "", at_);
    if (problem_)
      return *problem_;
    return std::move(tokens_);
  }

private:
  bool here(std::string_view what) const { return source_.substr(at_).starts_with(what); }

  /// Places only ever go forward, but for a few bytes: no table of lines is needed.
  position position_of(std::size_t place) {
    if (place < counted_) {
      counted_ = line_start_ = 0;
      line_ = 1;
    }
    for (; counted_ < place; ++counted_)
      if (source_[counted_] == '\n') {
        ++line_;
        line_start_ = counted_ + 1;
      }
    return {line_, static_cast<std::uint32_t>(place - line_start_ + 1)};
  }

  void add(token_kind kind, std::string text, std::size_t place) {
    tokens_.push_back({kind, std::move(text), position_of(place)});
  }

  void fail(std::size_t place, std::string_view sentence) {
    if (!problem_)
      problem_ = error_at(position_of(place), sentence);
    at_ = source_.size();
  }

  void cut_text() {
    std::size_t start = at_, tag = source_.size();
    for (std::size_t place = at_; (place = source_.find('{', place)) != source_.npos; ++place)
      if (place + 1 < source_.size()
          && std::string_view("{%#").find(source_[place + 1]) != source_.npos) {
        tag = place;
        break;
      }
    auto text = source_.substr(start, tag - start);
    at_ = std::min(tag + 2, source_.size());
    char sign = at_ < source_.size() ? source_[at_] : '\0';
    char kind = tag < source_.size() ? source_[tag + 1] : '\0';
    bool marked = kind != '\0' && (sign == '-' || sign == '+');
    if (marked && sign == '-')
      text = trim_end(text);
    else if ((kind == '%' || kind == '#') && !marked)
      text = without_indent(text);
    if (!text.empty())
      add(token_kind::text, std::string(text), start);
    at_ += marked;
    if (kind == '{')
      cut_tag(tag, token_kind::variable_begin, token_kind::variable_end, "}}");
    else if (kind == '%' && !cut_raw())
      cut_tag(tag, token_kind::block_begin, token_kind::block_end, "%}");
    else if (kind == '#')
      skip_comment(tag);
  }

  /// Without the blanks between the last line end and a block, if nothing else stands there.
  std::string_view without_indent(std::string_view text) const {
    auto line = text.rfind('\n') + 1; // 0: none
    if (line == 0 && !line_starting_)
      return text;
    return trim_end(text.substr(line)).empty() ? text.substr(0, line) : text;
  }

  /// After the two bytes that end a tag, for which `sign` stood.
  void after_tag(char sign, bool trims_line_end) {
    line_starting_ = false;
    std::size_t start = at_;
    if (sign == '-')
      at_ = source_.size() - trim_start(source_.substr(at_)).size();
    else if (sign != '+' && trims_line_end && here("\n"))
      ++at_;
    line_starting_ = at_ > start && source_[at_ - 1] == '\n';
  }

  void skip_comment(std::size_t tag) {
    auto end = source_.find("#}", at_);
    if (end == source_.npos)
      return fail(tag, "the comment that starts here never ends; its end is #}");
    char sign = end > at_ ? source_[end - 1] : '\0';
    at_ = end + 2;
    after_tag(sign, true);
  }

  /// The place after a name of a block's own, such as "raw" in "{% raw %}", without its sign.
  bool skip_word(std::string_view word) {
    std::size_t place = source_.size() - trim_start(source_.substr(at_)).size();
    if (!source_.substr(place).starts_with(word))
      return false;
    place += word.size();
    place = source_.size() - trim_start(source_.substr(place)).size();
    char sign =
      source_.substr(place, 1) == "-" || source_.substr(place, 1) == "+" ? source_[place] : '\0';
    place += sign != '\0';
    if (!source_.substr(place).starts_with("%}"))
      return false;
    at_ = place + 2;
    after_tag(sign, word != "raw");
    return true;
  }

  bool cut_raw() {
    std::size_t tag = at_;
    if (!skip_word("raw"))
      return false;
    std::size_t start = at_;
    for (std::size_t place = start; (place = source_.find("{%", place)) != source_.npos; ++place) {
      at_ = place + 2;
      char sign = at_ < source_.size() ? source_[at_] : '\0';
      at_ += sign == '-' || sign == '+';
      bool was_starting = std::exchange(line_starting_, false);
      if (!skip_word("endraw")) {
        line_starting_ = was_starting;
        continue;
      }
      auto text = source_.substr(start, place - start);
      bool ended_line = std::exchange(line_starting_, was_starting);
      text = sign == '-' ? trim_end(text) : sign == '+' ? text : without_indent(text);
      line_starting_ = ended_line;
      if (!text.empty())
        add(token_kind::text, std::string(text), start);
      return true;
    }
    fail(tag, "the raw block that starts here never ends; its end is {% endraw %}");
    return true;
  }

  void cut_tag(std::size_t tag, token_kind begin, token_kind end_kind, std::string_view end) {
    add(begin, "", tag);
    std::string open; // brackets
    while (!problem_) {
      at_ = source_.size() - trim_start(source_.substr(at_)).size();
      if (at_ == source_.size())
        return fail(tag, fmt::format("the tag that starts here never ends; its end is {}", end));
      char sign = source_[at_] == '-' || (source_[at_] == '+' && end == "%}") ? source_[at_] : '\0';
      if (open.empty() && source_.substr(at_ + (sign != '\0')).starts_with(end)) {
        add(end_kind, "", at_);
        at_ += 2 + (sign != '\0');
        return after_tag(sign, end == "%}");
      }
      cut_token(open);
    }
  }

  void cut_token(std::string& open) {
    char byte = source_[at_];
    if (is_name_start(byte)) {
      std::size_t start = at_;
      while (at_ < source_.size() && (is_name_start(source_[at_]) || is_digit(source_[at_])))
        ++at_;
      return add(token_kind::name, std::string(source_.substr(start, at_ - start)), start);
    }
    if (is_digit(byte))
      return cut_number();
    if (byte == '\'' || byte == '"')
      return cut_string();
    static constexpr std::array<std::string_view, 6> pairs = {"//", "**", "==", "!=", ">=", "<="};
    for (auto pair : pairs)
      if (here(pair))
        return take_sign(2);
    if (std::string_view("+-/*%~[](){}<>=.:|,;").find(byte) == std::string_view::npos)
      return fail(at_, fmt::format("'{}' means nothing in a template", first_character()));
    if (byte == '(' || byte == '[' || byte == '{') {
      open += byte;
    } else if (byte == ')' || byte == ']' || byte == '}') {
      if (open.empty() || open.back() != (byte == ')' ? '(' : byte == ']' ? '[' : '{'))
        return fail(at_, fmt::format("'{}' closes what is not open", byte));
      open.pop_back();
    }
    take_sign(1);
  }

  std::string_view first_character() const {
    return source_.substr(at_, utf8::length(source_[at_]));
  }

  void take_sign(std::size_t bytes) {
    add(token_kind::sign, std::string(source_.substr(at_, bytes)), at_);
    at_ += bytes;
  }

  /// Decimal numbers with "_" between digits. The part of Python's that templates have.
  void cut_number() {
    std::size_t start = at_;
    std::string digits;
    auto take_digits = [&] {
      while (at_ < source_.size() && (is_digit(source_[at_]) || source_[at_] == '_')) {
        if (source_[at_] != '_')
          digits += source_[at_];
        ++at_;
      }
    };
    take_digits();
    auto digit_at = [&](std::size_t place) {
      return place < source_.size() && is_digit(source_[place]);
    };
    bool real = here(".") && digit_at(at_ + 1);
    if (real) {
      digits += source_[at_++];
      take_digits();
    }
    if (here("e") || here("E")) {
      std::size_t exponent = at_ + 1;
      exponent +=
        exponent < source_.size() && (source_[exponent] == '-' || source_[exponent] == '+');
      if (digit_at(exponent)) {
        digits += source_.substr(at_, exponent - at_);
        at_ = exponent;
        take_digits();
        real = true;
      }
    }
    add(real ? token_kind::real : token_kind::integer, std::move(digits), start);
  }

  void cut_string() {
    std::size_t start = at_;
    char quote = source_[at_++];
    std::string text;
    while (at_ < source_.size() && source_[at_] != quote) {
      if (source_[at_] == '\\' && at_ + 1 < source_.size()) {
        ++at_;
        replace_escape(text);
      } else {
        text += source_[at_++];
      }
    }
    if (at_ == source_.size())
      return fail(start, "the text that starts here never ends");
    ++at_;
    add(token_kind::string, std::move(text), start);
  }

  /// Python's escapes. What is none keeps its backslash, and a backslash hides a line end.
  void replace_escape(std::string& text) {
    char byte = source_[at_++];
    static constexpr std::string_view names = "abfnrtv\\'\"", meant = "\a\b\f\n\r\t\v\\'\"";
    if (auto known = names.find(byte); known != names.npos) {
      text += meant[known];
    } else if (byte == 'x' || byte == 'u' || byte == 'U') {
      append_coded(text, byte == 'x' ? 2 : byte == 'u' ? 4 : 8);
    } else if (byte >= '0' && byte <= '7') {
      char32_t point = 0;
      --at_;
      for (int digit = 0;
           digit < 3 && at_ < source_.size() && source_[at_] >= '0' && source_[at_] <= '7';
           ++digit)
        point = point * 8 + static_cast<char32_t>(source_[at_++] - '0');
      utf8::append(text, point);
    } else if (byte != '\n') {
      text.append(1, '\\').append(1, byte);
    }
  }

  void append_coded(std::string& text, std::size_t digits) {
    auto code = source_.substr(at_, digits);
    if (code.size() < digits || !std::all_of(code.begin(), code.end(), is_hex_digit))
      return fail(at_, fmt::format("{} digits of 0-9 and a-f belong here", digits));
    auto point = static_cast<char32_t>(std::stoul(std::string(code), nullptr, 16));
    if (point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF))
      return fail(at_, fmt::format("{} is no character of Unicode", code));
    utf8::append(text, point);
    at_ += digits;
  }

  std::string_view source_;
  std::size_t at_ = 0;
  bool line_starting_ = true; ///< Nothing stands before at_ on its line that was not cut.
  std::size_t counted_ = 0, line_start_ = 0;
  std::uint32_t line_ = 1;
  std::vector<token> tokens_;
  std::optional<error> problem_;
};

} // namespace

result<std::vector<token>> cut_tokens(std::string_view source) {
  if (auto byte = utf8::first_invalid_byte(source))
    return error{errc::invalid_model,
                 fmt::format("it is not UTF-8: byte {} is 0x{:02x}",
                             *byte,
                             static_cast<unsigned char>(source[*byte]))};
  std::string plain = with_plain_lines(source);
  return cutter(plain).cut();
}

} // namespace troupe::compute::chat
