#include "compute/tokenizer/vocabulary.hpp"

#include "compute/tokenizer/decoder.hpp"

#include <fmt/core.h>

namespace troupe::compute {

result<void> vocabulary::add(token_id id, std::string piece) {
  if (id >= most_tokens)
    return error{
      errc::invalid_model,
      fmt::format("token \"{}\" has id {}; ids below {} are supported", piece, id, most_tokens)};
  if (holds(id) && entries_[id].piece != piece)
    return error{
      errc::invalid_model,
      fmt::format("id {} belongs to two tokens, \"{}\" and \"{}\"", id, entries_[id].piece, piece)};
  if (id >= entries_.size())
    entries_.resize(id + 1);
  entries_[id].piece = std::move(piece);
  entries_[id].present = true;
  return {};
}

result<void> vocabulary::finish(const decoder& how) {
  ids_.clear();
  ids_.reserve(entries_.size());
  for (token_id id = 0; id < entries_.size(); ++id) {
    auto& token = entries_[id];
    if (!token.present)
      continue;
    ids_.emplace(token.piece, id);
    auto text = how.bytes_of(token.piece, false);
    if (!text)
      return text.error();
    token.text = std::move(*text);
    if (how.rules().first == first_token_rule::same)
      continue;
    auto first = how.bytes_of(token.piece, true);
    if (!first)
      return first.error();
    if (*first != token.text)
      token.first_text = std::move(*first);
  }
  return {};
}

std::string_view vocabulary::piece(token_id id) const noexcept {
  return holds(id) ? std::string_view(entries_[id].piece) : std::string_view();
}

std::string_view vocabulary::text(token_id id) const noexcept {
  return holds(id) ? std::string_view(entries_[id].text) : std::string_view();
}

std::string_view vocabulary::first_text(token_id id) const noexcept {
  return holds(id) && entries_[id].first_text ? std::string_view(*entries_[id].first_text)
                                              : text(id);
}

std::optional<token_id> vocabulary::find(std::string_view piece) const {
  auto found = ids_.find(piece);
  if (found == ids_.end())
    return std::nullopt;
  return found->second;
}

} // namespace troupe::compute
