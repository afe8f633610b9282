#include "compute/chat/value_text.hpp"

#include "compute/tokenizer/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace troupe::compute::chat {

std::string to_text(double number) {
  if (std::isnan(number))
    return "nan";
  if (std::isinf(number))
    return number < 0 ? "-inf" : "inf";
  char digits[64];
  double size = std::abs(number);
  // Python writes an exponent below 1e-4 and from 1e16 on.
  auto form = size != 0 && (size < 1e-4 || size >= 1e16) ? std::chars_format::scientific
                                                         : std::chars_format::fixed;
  auto end = std::to_chars(digits, digits + sizeof digits, number, form).ptr;
  std::string text(digits, end);
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return text;
}

namespace {

/// Python's repr() of a string: single quotes, unless the text has only those.
void append_quoted(std::string& out, std::string_view text) {
  char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos
                 ? '"'
                 : '\'';
  out += quote;
  for (char byte : text) {
    auto code = static_cast<unsigned char>(byte);
    if (byte == quote || byte == '\\')
      out.append(1, '\\').append(1, byte);
    else if (byte == '\n')
      out += "\\n";
    else if (byte == '\r')
      out += "\\r";
    else if (byte == '\t')
      out += "\\t";
    else if (code < 0x20 || code == 0x7F)
      out += fmt::format("\\x{:02x}", code);
    else
      out += byte;
  }
  out += quote;
}

/// str() at the outside, repr() inside of lists and dictionaries.
class printer {
public:
  explicit printer(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  void print(const value& what, bool quoted) {
    if (full())
      return;
    if (auto text = what.as_text()) {
      if (quoted)
        append_quoted(out_, *text);
      else
        out_ += *text;
    } else if (auto list = what.as_list()) {
      print_list(*list);
    } else if (auto entries = what.as_dictionary()) {
      print_entries(*entries);
    } else {
      print_plain(what, quoted);
    }
  }

  std::string take() { return std::move(out_); }

private:
  bool full() const { return out_.size() > most_bytes_; }

  void print_plain(const value& what, bool quoted) {
    if (auto truth = what.as_boolean())
      out_ += *truth ? "True" : "False";
    else if (auto whole = what.as_integer())
      out_ += fmt::format("{}", *whole);
    else if (auto real = what.as_real())
      out_ += to_text(*real);
    else if (what.is_none())
      out_ += "None";
    else if (what.as_object() != nullptr)
      out_ += "<object>";
    else if (quoted)
      out_ += "Undefined";
  }

  void print_list(const value::items& list) {
    out_ += '[';
    for (std::size_t at = 0; at < list.size() && !full(); ++at) {
      out_ += at > 0 ? ", " : "";
      print(list[at], true);
    }
    out_ += ']';
  }

  void print_entries(const dictionary& entries) {
    out_ += '{';
    bool first = true;
    for (const auto& [key, content] : entries.entries()) {
      if (full())
        break;
      out_ += first ? "" : ", ";
      first = false;
      append_quoted(out_, key);
      out_ += ": ";
      print(content, true);
    }
    out_ += '}';
  }

  std::size_t most_bytes_;
  std::string out_;
};

class json_writer {
public:
  json_writer(const json_style& style, std::size_t most_bytes)
    : style_(style), most_bytes_(most_bytes),
      between_(style.item_separator.value_or(style.indent ? "," : ", ")),
      after_key_(style.key_separator.value_or(": ")) {}

  void write(const value& what) {
    if (full())
      return;
    if (auto text = what.as_text())
      write_text(*text);
    else if (auto list = what.as_list())
      write_list(*list);
    else if (auto entries = what.as_dictionary())
      write_entries(*entries);
    else
      write_plain(what);
  }

  std::string take() { return std::move(out_); }

  std::string_view unwritable() const { return unwritable_; }

private:
  bool full() const { return out_.size() > most_bytes_; }

  void write_plain(const value& what) {
    if (auto truth = what.as_boolean())
      out_ += *truth ? "true" : "false";
    else if (auto whole = what.as_integer())
      out_ += fmt::format("{}", *whole);
    else if (auto real = what.as_real())
      out_ += std::isnan(*real)   ? "NaN"
              : std::isinf(*real) ? (*real < 0 ? "-Infinity" : "Infinity")
                                  : to_text(*real);
    else if (what.is_none())
      out_ += "null";
    else if (unwritable_.empty())
      unwritable_ = type_name(what);
  }

  void write_unicode(char32_t point) {
    if (point >= 0x10000) {
      point -= 0x10000;
      out_ += fmt::format("\\u{:04x}\\u{:04x}",
                          0xD800 + (static_cast<std::uint32_t>(point) >> 10),
                          0xDC00 + (static_cast<std::uint32_t>(point) & 0x3FF));
    } else {
      out_ += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(point));
    }
  }

  void write_text(std::string_view text) {
    out_ += '"';
    while (!text.empty() && !full()) {
      auto bytes = std::min(utf8::length(text[0]), text.size());
      char byte = text[0];
      if (byte == '"' || byte == '\\')
        out_.append(1, '\\').append(1, byte);
      else if (byte == '\n')
        out_ += "\\n";
      else if (byte == '\r')
        out_ += "\\r";
      else if (byte == '\t')
        out_ += "\\t";
      else if (byte == '\b')
        out_ += "\\b";
      else if (byte == '\f')
        out_ += "\\f";
      else if (static_cast<unsigned char>(byte) < 0x20
               || (style_.ensure_ascii && (bytes > 1 || byte == 0x7F)))
        write_unicode(utf8::first(text));
      else
        out_ += text.substr(0, bytes);
      text.remove_prefix(bytes);
    }
    out_ += '"';
  }

  void new_line() {
    if (!style_.indent)
      return;
    out_ += '\n';
    for (std::size_t step = 0; step < level_ && !full(); ++step)
      out_ += *style_.indent;
  }

  void begin_item(bool first) {
    if (!first)
      out_ += between_;
    new_line();
  }

  void write_list(const value::items& list) {
    if (list.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    ++level_;
    for (std::size_t at = 0; at < list.size() && !full(); ++at) {
      begin_item(at == 0);
      write(list[at]);
    }
    --level_;
    new_line();
    out_ += ']';
  }

  void write_entries(const dictionary& entries) {
    if (entries.size() == 0) {
      out_ += "{}";
      return;
    }
    std::vector<const dictionary::entry*> order;
    for (const auto& entry : entries.entries())
      order.push_back(&entry);
    if (style_.sort_keys)
      std::sort(
        order.begin(), order.end(), [](auto one, auto other) { return one->first < other->first; });
    out_ += '{';
    ++level_;
    for (std::size_t at = 0; at < order.size() && !full(); ++at) {
      begin_item(at == 0);
      write_text(order[at]->first);
      out_ += after_key_;
      write(order[at]->second);
    }
    --level_;
    new_line();
    out_ += '}';
  }

  const json_style& style_;
  std::size_t most_bytes_;
  std::string between_, after_key_;
  std::string out_;
  std::size_t level_ = 0;
  std::string_view unwritable_;
};

} // namespace

std::string to_text(const value& what, std::size_t most_bytes) {
  printer out(most_bytes);
  out.print(what, false);
  return out.take();
}

std::string to_json(const value& what,
                    const json_style& style,
                    std::size_t most_bytes,
                    std::string_view& unwritable) {
  json_writer out(style, most_bytes);
  out.write(what);
  unwritable = out.unwritable();
  return out.take();
}

} // namespace troupe::compute::chat
