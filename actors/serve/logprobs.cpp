#include "actors/serve/logprobs.hpp"

#include "compute/tokenizer/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors::serve {

namespace {

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U;
}

} // namespace

void likelihoods::add(token_id token,
                      float logprob,
                      const std::vector<token_odds>& top,
                      std::vector<token_likelihood>& into) {
  if (words_->is_special(token))
    return;
  auto& one = into.emplace_back();
  one.chosen = {bytes_of(token), logprob};
  for (const auto& odds : top)
    one.top.push_back({bytes_of(odds.token), odds.logprob});
  // A token within a character stands where that character does.
  const auto& bytes = one.chosen.bytes;
  const bool goes_on = !bytes.empty() && !begins_character(bytes.front()) && characters_ > 0;
  one.offset = characters_ - (goes_on ? 1 : 0);
  characters_ += count_characters(bytes);
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

/// A special token among the likely ones is told by its name.
std::string likelihoods::bytes_of(token_id token) const {
  const auto& entries = words_->entries();
  if (!entries.holds(token))
    return {};
  return std::string(words_->is_special(token) ? entries.piece(token) : entries.text(token));
}

std::string token_text(std::string_view bytes) {
  if (!compute::utf8::first_invalid_byte(bytes))
    return std::string(bytes);
  std::string text = "bytes:";
  for (const auto byte : bytes)
    text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return text;
}

} // namespace troupe::actors::serve
