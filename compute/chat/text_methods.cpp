#include "compute/chat/text_methods.hpp"

#include "compute/chat/unicode.hpp"
#include "compute/tokenizer/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace troupe::compute::chat {

namespace {

value listed(run& running, position at, const std::vector<std::string_view>& parts) {
  value::items made;
  if (running.spend(at, parts.size() * run::node_cost))
    for (auto part : parts)
      made.emplace_back(part);
  return running.list(at, std::move(made));
}

/// The first word of what is left, which goes to `rest`.
std::string_view take_word(std::string_view& rest) {
  std::size_t end = 0;
  while (end < rest.size() && !is_space(utf8::first(rest.substr(end))))
    end += utf8::length(rest[end]);
  auto word = rest.substr(0, end);
  rest = trim_start(rest.substr(end));
  return word;
}

std::vector<std::string_view> words_of(std::string_view text, std::int64_t most) {
  std::vector<std::string_view> words;
  auto rest = trim_start(text);
  while (!rest.empty() && (most < 0 || static_cast<std::int64_t>(words.size()) < most))
    words.push_back(take_word(rest));
  if (!rest.empty())
    words.push_back(rest);
  return words;
}

std::vector<std::string_view> words_from_end(std::string_view text, std::int64_t most) {
  std::vector<std::string_view> words;
  auto rest = trim_end(text);
  while (!rest.empty() && (most < 0 || static_cast<std::int64_t>(words.size()) < most)) {
    std::size_t start = rest.size();
    while (start > 0 && !is_space(utf8::last(rest.substr(0, start))))
      do
        --start;
      while (start > 0 && (rest[start] & 0xC0) == 0x80);
    words.push_back(rest.substr(start));
    rest = trim_end(rest.substr(0, start));
  }
  if (!rest.empty())
    words.push_back(rest);
  std::reverse(words.begin(), words.end());
  return words;
}

/// The place in characters that a place in bytes is.
value place_of(std::string_view text, std::size_t byte) {
  return byte == std::string_view::npos ? value(-1) : value(count_characters(text.substr(0, byte)));
}

/// One of several texts, or a list of them: what startswith and endswith take.
bool any_of(run& running, position at, const value& which, auto holds) {
  if (auto list = which.as_list())
    return std::any_of(list->begin(), list->end(), [&](const value& one) {
      auto text = running.expect_text(at, one, "what is sought");
      return text != nullptr && holds(*text);
    });
  auto text = running.expect_text(at, which, "what is sought");
  return text != nullptr && holds(*text);
}

/// Each word large at its start, where words are runs of letters.
std::string titled(std::string_view text) {
  std::string made;
  bool inside = false;
  for (auto character : characters_of(text)) {
    made += inside ? to_lower(character) : to_upper(character);
    inside = all_letters(character);
  }
  return made;
}

using method = value (*)(run&, position, const std::string&, const call_values&);

template <bool Start, bool End>
value strip(run& running, position at, const std::string& of, const call_values& with) {
  parameters given(running, at, "strip", with, {"chars"});
  auto characters = given.optional_text(0);
  std::string_view text = of;
  if (Start)
    text = trim_start(text, characters);
  if (End)
    text = trim_end(text, characters);
  return running.text(at, std::string(text));
}

value split_at(run& running, position at, const std::string& of, const call_values& with) {
  parameters given(running, at, "split", with, {"sep", "maxsplit"});
  return split(running, at, of, given.optional_text(0), given.integer(1, -1));
}

value rsplit(run& running, position at, const std::string& of, const call_values& with) {
  parameters given(running, at, "rsplit", with, {"sep", "maxsplit"});
  auto separator = given.optional_text(0);
  auto most = given.integer(1, -1);
  if (!separator)
    return listed(running, at, words_from_end(of, most));
  if (separator->empty())
    return running.fail(at, "rsplit: the separator is empty");
  std::vector<std::string_view> parts;
  std::string_view rest = of;
  while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
    auto found = rest.rfind(*separator);
    if (found == rest.npos)
      break;
    parts.push_back(rest.substr(found + separator->size()));
    rest = rest.substr(0, found);
  }
  parts.push_back(rest);
  std::reverse(parts.begin(), parts.end());
  return listed(running, at, parts);
}

value splitlines(run& running, position at, const std::string& of, const call_values& with) {
  parameters given(running, at, "splitlines", with, {"keepends"});
  return listed(running, at, lines_of(of, given.flag(0, false)));
}

value startswith(run& running, position at, const std::string& of, const call_values& with) {
  parameters given(running, at, "startswith", with, {"prefix"});
  return any_of(
    running, at, given.required(0), [&](const std::string& one) { return of.starts_with(one); });
}

value endswith(run& running, position at, const std::string& of, const call_values& with) {
  parameters given(running, at, "endswith", with, {"suffix"});
  return any_of(
    running, at, given.required(0), [&](const std::string& one) { return of.ends_with(one); });
}

value removeprefix(run& running, position at, const std::string& of, const call_values& with) {
  parameters given(running, at, "removeprefix", with, {"prefix"});
  auto cut = given.text(0, "");
  return running.text(at, of.starts_with(cut) ? of.substr(cut.size()) : of);
}

value removesuffix(run& running, position at, const std::string& of, const call_values& with) {
  parameters given(running, at, "removesuffix", with, {"suffix"});
  auto cut = given.text(0, "");
  return running.text(at, of.ends_with(cut) ? of.substr(0, of.size() - cut.size()) : of);
}

value replace_in(run& running, position at, const std::string& of, const call_values& with) {
  parameters given(running, at, "replace", with, {"old", "new", "count"});
  given.required(0);
  given.required(1);
  return replace(running, at, of, given.text(0, ""), given.text(1, ""), given.integer(2, -1));
}

value find(run& running, position at, const std::string& of, const call_values& with) {
  parameters given(running, at, "find", with, {"sub"});
  return place_of(of, of.find(given.text(0, "")));
}

value rfind(run& running, position at, const std::string& of, const call_values& with) {
  parameters given(running, at, "rfind", with, {"sub"});
  return place_of(of, of.rfind(given.text(0, "")));
}

value index(run& running, position at, const std::string& of, const call_values& with) {
  auto place = find(running, at, of, with);
  if (place.as_integer() != nullptr && *place.as_integer() < 0)
    return running.fail(at, "index: the text does not have what is sought");
  return place;
}

value count(run& running, position at, const std::string& of, const call_values& with) {
  parameters given(running, at, "count", with, {"sub"});
  auto sought = given.text(0, "");
  if (sought.empty())
    return count_characters(of) + 1;
  std::size_t found = 0;
  for (auto place = of.find(sought); place != of.npos;
       place = of.find(sought, place + sought.size()))
    ++found;
  return found;
}

value partition(run& running, position at, const std::string& of, const call_values& with) {
  parameters given(running, at, "partition", with, {"sep"});
  auto separator = given.text(0, "");
  if (separator.empty())
    return running.fail(at, "partition: the separator is empty");
  auto found = of.find(separator);
  if (found == of.npos)
    return running.list(at, {value(of), value(""), value("")});
  return running.list(
    at, {value(of.substr(0, found)), value(separator), value(of.substr(found + separator.size()))});
}

value join(run& running, position at, const std::string& of, const call_values& with) {
  parameters given(running, at, "join", with, {"iterable"});
  std::string made;
  bool first = true;
  for (const auto& item : running.items_of(at, given.required(0))) {
    auto text = running.expect_text(at, item, "what is joined");
    if (text == nullptr || !running.spend(at, text->size() + of.size()))
      return {};
    made += first ? "" : of;
    made += *text;
    first = false;
  }
  return running.text(at, std::move(made));
}

template <std::string (*Map)(std::string_view)>
value map(run& running, position at, const std::string& of, const call_values& with) {
  parameters given(running, at, "a method of texts", with, {});
  return running.text(at, Map(of));
}

template <bool (*Is)(std::string_view) noexcept>
value ask(run& running, position at, const std::string& of, const call_values& with) {
  parameters given(running, at, "a method of texts", with, {});
  return Is(of);
}

struct named_method {
  std::string_view name;
  method body;
};

constexpr std::array<named_method, 30> methods = {{
  {"capitalize", map<capitalized>},
  {"count", count},
  {"endswith", endswith},
  {"find", find},
  {"index", index},
  {"isalnum", ask<all_letters_or_digits>},
  {"isalpha", ask<all_letters>},
  {"isdecimal", ask<all_digits>},
  {"isdigit", ask<all_digits>},
  {"islower", ask<is_lower>},
  {"isnumeric", ask<all_digits>},
  {"isspace", ask<all_spaces>},
  {"isupper", ask<is_upper>},
  {"join", join},
  {"lower", map<to_lower>},
  {"lstrip", strip<true, false>},
  {"partition", partition},
  {"removeprefix", removeprefix},
  {"removesuffix", removesuffix},
  {"replace", replace_in},
  {"rfind", rfind},
  {"rsplit", rsplit},
  {"rstrip", strip<false, true>},
  {"split", split_at},
  {"splitlines", splitlines},
  {"startswith", startswith},
  {"strip", strip<true, true>},
  {"title", map<titled>},
  {"upper", map<to_upper>},
  {"casefold", map<to_lower>},
}};

const named_method* method_of(std::string_view name) noexcept {
  auto found =
    std::find_if(methods.begin(), methods.end(), [&](const auto& one) { return one.name == name; });
  return found == methods.end() ? nullptr : &*found;
}

} // namespace

bool has_text_method(std::string_view name) noexcept {
  return method_of(name) != nullptr;
}

value call_text_method(run& running,
                       position at,
                       const std::string& of,
                       std::string_view name,
                       const call_values& with) {
  return method_of(name)->body(running, at, of, with);
}

value split(run& running,
            position at,
            std::string_view text,
            const std::optional<std::string>& separator,
            std::int64_t most) {
  if (!separator)
    return listed(running, at, words_of(text, most));
  if (separator->empty())
    return running.fail(at, "split: the separator is empty");
  std::vector<std::string_view> parts;
  while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
    auto found = text.find(*separator);
    if (found == text.npos)
      break;
    parts.push_back(text.substr(0, found));
    text.remove_prefix(found + separator->size());
  }
  parts.push_back(text);
  return listed(running, at, parts);
}

value replace(run& running,
              position at,
              std::string_view text,
              std::string_view old,
              std::string_view with,
              std::int64_t most) {
  std::string made;
  auto room = [&] { return made.size() <= running.limits().text_bytes; };
  if (old.empty()) { // between all characters, and around
    for (auto character : characters_of(text)) {
      if (most-- != 0 && room())
        made += with;
      made += character;
    }
    made += most != 0 && room() ? with : "";
    return running.text(at, std::move(made));
  }
  for (; most != 0 && room(); --most) {
    auto found = text.find(old);
    if (found == text.npos)
      break;
    made.append(text.substr(0, found)).append(with);
    text.remove_prefix(found + old.size());
  }
  made += text;
  return running.text(at, std::move(made));
}

std::vector<std::string_view> lines_of(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size();) {
    auto point = utf8::first(text.substr(at));
    std::size_t next = at + utf8::length(text[at]);
    bool ends = (point >= 0x0A && point <= 0x0D) || (point >= 0x1C && point <= 0x1E)
                || point == 0x85 || point == 0x2028 || point == 0x2029;
    if (ends) {
      if (point == '\r' && next < text.size() && text[next] == '\n')
        ++next;
      lines.push_back(text.substr(start, (keep_ends ? next : at) - start));
      start = next;
    }
    at = next;
  }
  if (start < text.size())
    lines.push_back(text.substr(start));
  return lines;
}

std::string capitalized(std::string_view text) {
  if (text.empty())
    return {};
  auto first = utf8::length(text[0]);
  return to_upper(text.substr(0, first)) + to_lower(text.substr(first));
}

} // namespace troupe::compute::chat
