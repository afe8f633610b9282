#include "compute/tokenizer/pre_tokenizer.hpp"

#include "compute/tokenizer/byte_level.hpp"
#include "compute/tokenizer/utf8.hpp"

#include <algorithm>

namespace troupe::compute {

namespace {

/// Turns matches and what lies between into the parts that `behavior` keeps.
std::vector<text_part> arrange(std::vector<text_part> parts, split_behavior behavior) {
  std::vector<text_part> kept;
  auto merge = [&](const text_part& next, bool into_last) {
    if (into_last && !kept.empty())
      kept.back() = {
        std::min(kept.back().begin, next.begin), std::max(kept.back().end, next.end), next.matched};
    else
      kept.push_back(next);
  };
  switch (behavior) {
  case split_behavior::isolated: return parts;
  case split_behavior::removed:
    std::erase_if(parts, [](const text_part& part) { return part.matched; });
    return parts;
  case split_behavior::contiguous:
    for (const auto& part : parts)
      merge(part, !kept.empty() && kept.back().matched == part.matched);
    return kept;
  case split_behavior::merged_with_previous:
    for (bool after_match = false; const auto& part : parts) {
      merge(part, part.matched && !after_match);
      after_match = part.matched;
    }
    return kept;
  case split_behavior::merged_with_next:
    std::reverse(parts.begin(), parts.end());
    for (bool after_match = false; const auto& part : parts) {
      merge(part, part.matched && !after_match);
      after_match = part.matched;
    }
    std::reverse(kept.begin(), kept.end());
    return kept;
  }
  return kept;
}

/// Appends the parts of `from` as words.
void add_words(const word& from, const std::vector<text_part>& parts, std::vector<word>& out) {
  for (const auto& part : parts)
    if (part.end > part.begin)
      out.push_back(
        {from.text.substr(part.begin, part.end - part.begin), from.at_start && part.begin == 0});
}

/// Each character that `matches` is a part of its own; runs of others are one part.
template <class Classify>
std::vector<text_part> cut_characters(std::string_view text, Classify matches) {
  std::vector<text_part> parts;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + utf8::length(text[at]);
    bool matched = matches(utf8::first(text.substr(at)));
    if (!matched && !parts.empty() && !parts.back().matched)
      parts.back().end = end;
    else
      parts.push_back({at, end, matched});
    at = end;
  }
  return parts;
}

struct applied {
  word input;
  std::vector<word>& out;

  result<void> operator()(const split_by_pattern& step) {
    auto parts = step.pattern.cut(input.text);
    if (!parts)
      return parts.error();
    if (step.invert)
      for (auto& part : *parts)
        part.matched = !part.matched;
    add_words(input, arrange(std::move(*parts), step.behavior), out);
    return {};
  }

  result<void> operator()(const split_by_class& step) {
    using enum split_by_class::kind;
    auto test = step.of == digits        ? utf8::is_numeric
                : step.of == punctuation ? utf8::is_punctuation
                                         : utf8::is_whitespace;
    add_words(input, arrange(cut_characters(input.text, test), step.behavior), out);
    return {};
  }

  result<void> operator()(const split_words&) {
    auto kind_of = [](char32_t point) {
      return utf8::is_word(point) ? 2 : utf8::is_whitespace(point) ? 0 : 1;
    };
    int last = 0;
    std::vector<text_part> parts;
    std::string_view text = input.text;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at + utf8::length(text[at]);
      int kind = kind_of(utf8::first(text.substr(at)));
      if (kind != 0 && kind == last)
        parts.back().end = end;
      else if (kind != 0)
        parts.push_back({at, end, true});
      last = kind;
      at = end;
    }
    add_words(input, parts, out);
    return {};
  }

  result<void> operator()(const byte_level_words& step) {
    if (step.add_prefix_space && !input.text.starts_with(' '))
      input.text.insert(0, 1, ' ');
    std::vector<text_part> parts = {{0, input.text.size(), false}};
    if (!step.pattern.empty()) {
      auto cut = step.pattern[0].cut(input.text);
      if (!cut)
        return cut.error();
      parts = std::move(*cut);
    }
    for (const auto& part : parts) {
      if (part.begin == part.end)
        continue;
      word spelled{{}, input.at_start && part.begin == 0};
      std::string_view bytes(input.text.data() + part.begin, part.end - part.begin);
      byte_level::spell(bytes, spelled.text);
      out.push_back(std::move(spelled));
    }
    return {};
  }

  result<void> operator()(const metaspace_words& step) {
    std::string marked;
    for (char byte : input.text)
      if (byte == ' ')
        marked += step.mark;
      else
        marked += byte;
    bool wanted = step.scheme == metaspace_words::prepend::always
                  || (step.scheme == metaspace_words::prepend::first && input.at_start);
    if (wanted && !marked.starts_with(step.mark))
      marked.insert(0, step.mark);
    input.text = std::move(marked);
    std::size_t begin = 0;
    for (auto at = input.text.find(step.mark, 1); step.split && at != std::string::npos;
         at = input.text.find(step.mark, at + step.mark.size())) {
      out.push_back({input.text.substr(begin, at - begin), input.at_start && begin == 0});
      begin = at;
    }
    out.push_back({input.text.substr(begin), input.at_start && begin == 0});
    return {};
  }
};

} // namespace

result<std::vector<word>> pre_tokenizer::apply(word text) const {
  std::vector<word> words;
  if (!text.text.empty())
    words.push_back(std::move(text));
  for (const auto& step : steps_) {
    std::vector<word> next;
    for (auto& input : words)
      if (auto done = std::visit(applied{std::move(input), next}, step); !done)
        return done.error();
    words = std::move(next);
  }
  return words;
}

result<split_pattern> gpt2_pattern() {
  return split_pattern::regex(
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
}

} // namespace troupe::compute
