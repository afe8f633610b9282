#include "compute/tokenizer/text_stream.hpp"

#include "compute/tokenizer/tokenizer.hpp"

#include <utility>

namespace troupe::compute {

text_stream::text_stream(const tokenizer& vocabulary, bool skip_special)
  : tokenizer_(&vocabulary), skip_special_(skip_special),
    strip_left_(vocabulary.joining().strip_count), characters_(vocabulary.joining().invalid) {}

text_stream::text_stream(const tokenizer& vocabulary,
                         bool skip_special,
                         std::span<const token_id> prompt)
  : text_stream(vocabulary, skip_special) {
  std::string shown; // what the prompt showed decides what the answer's first token shows
  for (token_id token : prompt) {
    append(token, shown);
    shown.clear();
  }
}

std::string text_stream::push(token_id token) {
  std::string text;
  append(token, text);
  return text;
}

std::string text_stream::flush() {
  std::string text;
  characters_.flush(text);
  return text;
}

void text_stream::append(token_id token, std::string& out) {
  const auto& entries = tokenizer_->entries();
  if (!entries.holds(token) || (skip_special_ && entries.is_special(token)))
    return;
  const auto& rules = tokenizer_->joining();
  if (std::exchange(separated_, !rules.separator.empty()))
    characters_.push(rules.separator, out);
  auto bytes = first_ ? entries.first_text(token) : entries.text(token);
  bool took_mark = first_ && bytes.size() != entries.text(token).size();
  characters_.push(bytes, out);
  switch (rules.first) {
  case first_token_rule::same:
  case first_token_rule::one_token: first_ = false; break;
  case first_token_rule::until_text: first_ = first_ && bytes.empty(); break;
  case first_token_rule::until_text_or_mark: first_ = first_ && bytes.empty() && !took_mark; break;
  }
  strip_start(out);
}

void text_stream::strip_start(std::string& text) {
  const auto& content = tokenizer_->joining().strip_content;
  while (strip_left_ > 0 && !text.empty()) {
    if (!text.starts_with(content)) {
      strip_left_ = 0;
      return;
    }
    text.erase(0, content.size());
    --strip_left_;
  }
}

} // namespace troupe::compute
