#include "compute/tokenizer/normalizer.hpp"

#include "compute/tokenizer/utf8.hpp"

#include <fmt/core.h>
#include <utf8proc.h>

#include <cstdlib>

namespace troupe::compute {

namespace {

struct applied {
  std::string text;

  result<std::string> operator()(const unicode_form& step) {
    int options = UTF8PROC_STABLE;
    using enum unicode_form::kind;
    options |= step.form == nfc || step.form == nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
    if (step.form == nfkc || step.form == nfkd)
      options |= UTF8PROC_COMPAT;
    utf8proc_uint8_t* mapped = nullptr;
    auto bytes = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                              static_cast<utf8proc_ssize_t>(text.size()),
                              &mapped,
                              static_cast<utf8proc_option_t>(options));
    if (bytes < 0)
      return error{
        errc::compute_error,
        fmt::format("normalising {} bytes of text: {}", text.size(), utf8proc_errmsg(bytes))};
    text.assign(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(bytes));
    std::free(mapped);
    return std::move(text);
  }

  result<std::string> operator()(const lowercase&) {
    std::string lower;
    std::string_view rest = text;
    for (; !rest.empty(); rest.remove_prefix(utf8::length(rest[0]))) {
      char32_t point = utf8::first(rest);
      if (point == 0x130) // the one character whose lower case is two
        lower += "i\xCC\x87";
      else
        utf8::append(lower,
                     static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(point))));
    }
    return lower;
  }

  result<std::string> operator()(const strip_whitespace& step) {
    std::string_view rest = text;
    while (step.left && !rest.empty() && utf8::is_whitespace(utf8::first(rest)))
      rest.remove_prefix(utf8::length(rest[0]));
    while (step.right && !rest.empty() && utf8::is_whitespace(utf8::last(rest))) {
      bool inside = true; // the byte taken off is not the first of its character
      while (inside) {
        inside = (rest.back() & 0xC0) == 0x80;
        rest.remove_suffix(1);
      }
    }
    return std::string(rest);
  }

  result<std::string> operator()(const replace_matches& step) {
    return step.pattern.replace(text, step.content);
  }

  result<std::string> operator()(const prepend_text& step) {
    return text.empty() ? std::move(text) : step.text + text;
  }
};

} // namespace

result<std::string> normalizer::apply(std::string text) const {
  for (const auto& step : steps_) {
    auto next = std::visit(applied{std::move(text)}, step);
    if (!next)
      return next;
    text = std::move(*next);
  }
  return text;
}

} // namespace troupe::compute
