#include "compute/tokenizer/added_tokens.hpp"

#include "compute/tokenizer/utf8.hpp"

#include <algorithm>

namespace troupe::compute {

void added_token_matcher::add(const added_token& token) {
  if (token.content.empty())
    return; // as HF: an empty token would be found everywhere
  std::uint32_t node = 0;
  for (char byte : token.content) {
    auto [edge, fresh] =
      edges_.emplace(std::uint64_t{node} << 8 | static_cast<unsigned char>(byte), nodes_);
    nodes_ += fresh;
    node = edge->second;
  }
  first_bytes_.set(static_cast<unsigned char>(token.content[0]));
  ends_[node] = tokens_.size();
  tokens_.push_back(token);
}

added_token_matcher::match added_token_matcher::longest_at(std::string_view text) const {
  match best;
  std::uint32_t node = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    auto edge = edges_.find(std::uint64_t{node} << 8 | static_cast<unsigned char>(text[at]));
    if (edge == edges_.end())
      break;
    node = edge->second;
    if (auto end = ends_.find(node); end != ends_.end())
      best = {at + 1, &tokens_[end->second]};
  }
  return best;
}

std::vector<added_part> added_token_matcher::cut(std::string_view text) const {
  std::vector<added_part> parts;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (!first_bytes_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    auto found = longest_at(text.substr(at));
    if (found.token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + found.bytes;
    at = end;
    if (found.token->single_word
        && ((begin > 0 && utf8::is_word(utf8::last(text.substr(0, begin))))
            || (end < text.size() && utf8::is_word(utf8::first(text.substr(end))))))
      continue;
    while (found.token->lstrip && begin > done
           && utf8::is_whitespace(utf8::last(text.substr(0, begin))))
      do
        --begin;
      while ((text[begin] & 0xC0) == 0x80);
    while (found.token->rstrip && end < text.size()
           && utf8::is_whitespace(utf8::first(text.substr(end))))
      end += utf8::length(text[end]);
    if (done < begin)
      parts.push_back({text.substr(done, begin - done), std::nullopt});
    parts.push_back({text.substr(begin, end - begin), found.token->id});
    done = end;
    at = std::max(at, end);
  }
  if (done < text.size())
    parts.push_back({text.substr(done), std::nullopt});
  return parts;
}

} // namespace troupe::compute
