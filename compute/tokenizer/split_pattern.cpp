#include "compute/tokenizer/split_pattern.hpp"

#include "compute/tokenizer/utf8.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/core.h>
#include <pcre2.h>

#include <optional>

namespace troupe::compute {

struct split_pattern::program {
  std::string pattern; ///< As the file spells it.
  pcre2_code* code = nullptr;

  explicit program(std::string_view spelled) : pattern(spelled) {}

  program(const program&) = delete;
  program& operator=(const program&) = delete;

  ~program() { pcre2_code_free(code); }
};

namespace {

error refused(std::string_view pattern, std::size_t at, std::string_view why) {
  return {errc::invalid_model, fmt::format("pattern \"{}\", byte {}: {}", pattern, at, why)};
}

std::string message_of(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

/// What a thread needs to match: room for one match, and a stack for the JIT's code.
struct scratch {
  pcre2_match_data* match = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 * 1024, 4 * 1024 * 1024, nullptr);

  scratch() { pcre2_jit_stack_assign(context, nullptr, stack); }

  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  ~scratch() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(match);
  }
};

/// One bracketed class, its '[' at `at`: appends PCRE2's form and returns the offset behind it.
result<std::size_t> copy_class(std::string_view pattern, std::size_t at, std::string& out) {
  std::size_t begin = at++;
  bool negated = at < pattern.size() && pattern[at] == '^', space = false, no_space = false;
  at += negated;
  std::string inside;
  for (bool first = true; at < pattern.size(); first = false) {
    auto rest = pattern.substr(at);
    if (rest[0] == ']' && !first)
      break;
    if (rest.starts_with("&&") || (rest[0] == '[' && !rest.starts_with("[:")))
      return refused(pattern, at, "classes within classes and && are not supported");
    if (rest.starts_with("[:"))
      return refused(pattern, at, "POSIX classes are not supported; use \\p{...}");
    std::size_t taken = 1;
    if (rest[0] == '\\' && rest.size() > 1) {
      taken = 2;
      if (rest[1] == 'h' || rest[1] == 'H' || rest[1] == 'R' || rest[1] == 'X')
        return refused(pattern, at, "\\h, \\H, \\R and \\X are not supported in a class");
      space |= rest[1] == 's';
      no_space |= rest[1] == 'S';
    }
    inside += rest.substr(0, taken);
    at += taken;
  }
  if (at >= pattern.size())
    return refused(pattern, begin, "the class has no end");
  // U+180E is a space for PCRE2 and is none for Oniguruma.
  std::string_view mark = negated ? "[^" : "[";
  if (no_space)
    out += fmt::format("{}{}\\x{{180E}}]", mark, inside);
  else if (space && negated)
    out += fmt::format("(?:[^{}]|\\x{{180E}})", inside);
  else if (space)
    out += fmt::format("(?:(?!\\x{{180E}})[{}])", inside);
  else
    out += fmt::format("{}{}]", mark, inside);
  return at + 1;
}

} // namespace

result<std::string> pcre2_spelling(std::string_view pattern) {
  std::string out;
  for (std::size_t at = 0; at < pattern.size();) {
    auto rest = pattern.substr(at);
    if (rest[0] == '[') {
      auto behind = copy_class(pattern, at, out);
      if (!behind)
        return behind.error();
      at = *behind;
    } else if (rest[0] == '\\' && rest.size() > 1) {
      switch (rest[1]) {
      case 's': out += "[^\\S\\x{180E}]"; break;
      case 'S': out += "[\\S\\x{180E}]"; break;
      case 'h': out += "[0-9a-fA-F]"; break;
      case 'H': out += "[^0-9a-fA-F]"; break;
      default: out += rest.substr(0, 2);
      }
      at += 2;
    } else {
      out += rest[0];
      ++at;
    }
  }
  return out;
}

result<split_pattern> split_pattern::regex(std::string_view oniguruma) {
  auto spelled = pcre2_spelling(oniguruma);
  if (!spelled)
    return spelled.error();
  auto made = std::make_shared<program>(oniguruma);
  int code = 0;
  std::size_t at = 0;
  // Ruby's syntax, which HF's use of Oniguruma has: ^ and $ are those of lines.
  made->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelled->data()),
                             spelled->size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                             &code,
                             &at,
                             nullptr);
  if (made->code == nullptr)
    return refused(oniguruma, at, message_of(code));
  pcre2_jit_compile(made->code, PCRE2_JIT_COMPLETE); // without it the interpreter matches the same
  split_pattern pattern;
  pattern.program_ = std::move(made);
  return pattern;
}

result<split_pattern> split_pattern::literal(std::string_view text) {
  if (text.empty())
    return error{errc::invalid_model, "a pattern of type String is empty"};
  split_pattern pattern;
  pattern.literal_ = text;
  return pattern;
}

result<std::vector<text_part>> split_pattern::cut(std::string_view text) const {
  static thread_local scratch mine;
  std::vector<text_part> parts;
  std::size_t done = 0;
  auto add = [&](std::size_t begin, std::size_t end) {
    if (done < begin)
      parts.push_back({done, begin, false});
    parts.push_back({begin, end, true});
    done = end;
  };
  if (!program_) {
    for (auto at = text.find(literal_); at != text.npos; at = text.find(literal_, done))
      add(at, at + literal_.size());
  }
  std::optional<std::size_t> last_end;
  for (std::size_t from = 0; program_ && from <= text.size();) {
    int count = pcre2_match(program_->code,
                            reinterpret_cast<PCRE2_SPTR>(text.data()),
                            text.size(),
                            from,
                            PCRE2_NO_UTF_CHECK,
                            mine.match,
                            mine.context);
    if (count == PCRE2_ERROR_NOMATCH)
      break;
    if (count < 0)
      return error{errc::compute_error,
                   fmt::format("pattern \"{}\" could not be matched from byte {} of {}: {}",
                               program_->pattern,
                               from,
                               text.size(),
                               message_of(count))};
    auto* range = pcre2_get_ovector_pointer(mine.match);
    if (range[0] == range[1] && last_end == range[1]) { // an empty match right behind the last
      from += from < text.size() ? utf8::length(text[from]) : 1;
      continue;
    }
    add(range[0], range[1]);
    from = range[1];
    last_end = range[1];
  }
  if (done < text.size())
    parts.push_back({done, text.size(), false});
  return parts;
}

result<std::string> split_pattern::replace(std::string_view text, std::string_view content) const {
  auto parts = cut(text);
  if (!parts)
    return parts.error();
  std::string replaced;
  for (const auto& part : *parts)
    replaced += part.matched ? content : text.substr(part.begin, part.end - part.begin);
  return replaced;
}

} // namespace troupe::compute
