#include "compute/grammar/token_trie.hpp"

#include "compute/tokenizer/tokenizer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

namespace troupe::compute {

token_trie::token_trie(const std::vector<std::string>& texts) : texts_(texts) {
  std::vector<token_id> order(texts_.size());
  std::iota(order.begin(), order.end(), token_id{0});
  std::erase_if(order, [&](token_id id) { return texts_[id].empty(); });
  std::sort(order.begin(), order.end(), [&](token_id one, token_id other) {
    return std::pair(std::string_view(texts_[one]), one)
           < std::pair(std::string_view(texts_[other]), other);
  });
  std::vector<std::uint32_t> path; // nodes from the root to the last token's end
  std::string_view last;
  auto leave = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back())
      nodes_[path.back()].after = static_cast<std::uint32_t>(nodes_.size());
  };
  for (auto id : order) {
    std::string_view text = texts_[id];
    auto differs = std::mismatch(text.begin(), text.end(), last.begin(), last.end());
    leave(static_cast<std::size_t>(differs.first - text.begin()));
    while (path.size() < text.size()) {
      path.push_back(static_cast<std::uint32_t>(nodes_.size()));
      node made;
      made.byte = static_cast<std::uint8_t>(text[path.size() - 1]);
      made.first_token = static_cast<std::uint32_t>(tokens_.size());
      nodes_.push_back(made);
    }
    ++nodes_[path.back()].tokens;
    tokens_.push_back(id);
    last = text;
  }
  leave(0);
}

result<std::shared_ptr<const token_trie>> token_trie::of(const tokenizer& words) {
  if (!words.joining().separator.empty())
    return error{errc::unsupported,
                 fmt::format("the tokenizer puts \"{}\" between tokens; answers by a grammar need "
                             "one whose tokens are the text",
                             words.joining().separator)};
  const auto& entries = words.entries();
  std::vector<std::string> texts(words.vocabulary_size());
  for (token_id id = 0; id < texts.size(); ++id)
    if (entries.holds(id) && !entries.is_special(id))
      texts[id] = entries.text(id);
  return std::shared_ptr<const token_trie>(std::make_shared<token_trie>(texts));
}

} // namespace troupe::compute
