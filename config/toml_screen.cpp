#include "config/toml_screen.hpp"

#include <fmt/core.h>

namespace troupe {

namespace {

// Length of the UTF-8 sequence at the start of `text`, 0 when it is not one (RFC 3629: no overlong
// forms, no surrogates, nothing above U+10FFFF).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto first = byte(0);
  if (first < 0x80)
    return 1;
  const std::size_t length = first < 0xC2   ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length == 0 || text.size() < length)
    return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80)
      return 0;
  const auto second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second >= 0xA0;
  const bool too_high = first == 0xF4 && second >= 0x90;
  return overlong || surrogate || too_high ? 0 : length;
}

// Follows strings, comments, brackets and dots just far enough to know how deep the parser will go.
// Where the text is not TOML the parser stops at the latest where this scan loses its way.
class scan {
public:
  scan(std::string_view text, std::string_view name, const toml_bounds& bounds)
    : text_(text), name_(name), bounds_(bounds) {}

  result<void> run() {
    while (at_ < text_.size()) {
      if (auto fine = character(); !fine)
        return fine;
    }
    return {};
  }

private:
  enum class inside { nothing, comment, string };

  error wrong(std::string_view what) const {
    return {errc::invalid_config,
            fmt::format("{}:{}:{}: {}", name_, line_, at_ - line_begin_ + 1, what)};
  }

  result<void> character() {
    const auto length = sequence_length(text_.substr(at_));
    const char c = text_[at_];
    const auto value = static_cast<unsigned>(static_cast<unsigned char>(c));
    if (length == 0)
      return wrong(fmt::format("byte 0x{:02x} is not UTF-8; a cluster file is UTF-8 text", value));
    if ((value < 0x20 && c != '\t' && c != '\n' && c != '\r') || value == 0x7F)
      return wrong(fmt::format("control character 0x{:02x}; this is not a text file", value));
    if (at_ - line_begin_ >= bounds_.line_bytes)
      return wrong(fmt::format("the line is longer than {} bytes; break the list into several "
                               "lines",
                               bounds_.line_bytes));
    if (c == '\n')
      next_line();
    else if (state_ == inside::string)
      in_string(c);
    else if (state_ == inside::nothing)
      if (auto fine = outside(c); !fine)
        return fine;
    at_ += length;
    return {};
  }

  void next_line() {
    ++line_;
    line_begin_ = at_ + 1;
    dots_ = 0;
    escaped_ = false;
    // A string of one quote ends with its line; the parser will say so.
    if (state_ == inside::comment || (state_ == inside::string && quote_.size() == 1))
      state_ = inside::nothing;
  }

  void in_string(char c) {
    if (escaped_)
      escaped_ = false;
    else if (c == '\\' && quote_[0] == '"')
      escaped_ = true;
    else if (text_.substr(at_).starts_with(quote_)) {
      at_ += quote_.size() - 1;
      state_ = inside::nothing;
    }
  }

  result<void> outside(char c) {
    switch (c) {
    case '#': state_ = inside::comment; break;
    case '"':
    case '\'': {
      const auto rest = text_.substr(at_);
      const auto triple = rest.size() >= 3 && rest[1] == c && rest[2] == c;
      quote_ = rest.substr(0, triple ? 3 : 1);
      at_ += quote_.size() - 1;
      state_ = inside::string;
      break;
    }
    case '[':
    case '{':
      dots_ = 0;
      ++values_;
      if (++depth_ > bounds_.depth)
        return wrong(fmt::format("brackets are nested deeper than {}", bounds_.depth));
      break;
    case ']':
    case '}': depth_ -= depth_ > 0 ? 1 : 0; [[fallthrough]];
    case ',':
    case '=':
      dots_ = 0;
      ++values_;
      break;
    case '.':
      if (++dots_ > bounds_.depth)
        return wrong(fmt::format("a key has more than {} parts", bounds_.depth));
      break;
    default: break;
    }
    if (values_ > bounds_.values)
      return wrong(fmt::format("more than {} values", bounds_.values));
    return {};
  }

  std::string_view text_;
  std::string_view name_;
  const toml_bounds& bounds_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t line_begin_ = 0;
  std::size_t depth_ = 0;
  std::size_t dots_ = 0;
  std::size_t values_ = 0;
  inside state_ = inside::nothing;
  std::string_view quote_; ///< One or three quotes: what ends the string.
  bool escaped_ = false;   ///< The last character was a backslash in a string that knows escapes.
};

} // namespace

result<std::string_view>
screen_toml(std::string_view text, std::string_view name, const toml_bounds& bounds) {
  if (text.size() > bounds.text_bytes)
    return error{errc::invalid_config,
                 fmt::format("{}: larger than {} bytes, the most that a cluster file may have",
                             name,
                             bounds.text_bytes)};
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark))
    text.remove_prefix(byte_order_mark.size());
  if (auto fine = scan{text, name, bounds}.run(); !fine)
    return fine.error();
  return text;
}

} // namespace troupe
