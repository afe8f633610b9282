#include "compute/tokenizer/bpe.hpp"

#include "compute/tokenizer/utf8.hpp"

#include <fmt/core.h>

#include <bit>
#include <mutex>
#include <queue>

namespace troupe::compute {

namespace {

constexpr std::size_t longest_cached_word = 64;
constexpr std::size_t most_cached_words = 16384;

std::size_t slot_of(std::uint64_t pair, std::size_t slots) noexcept {
  return (pair * 0x9E3779B97F4A7C15u >> 20) & (slots - 1);
}

bool is_byte_piece(std::string_view piece) noexcept {
  return piece.size() == 6 && piece.starts_with("<0x") && piece.ends_with('>');
}

} // namespace

/// Recent words. Cleared when full: cheaper than order, and the frequent ones are back at once.
struct bpe::cache {
  struct hash {
    using is_transparent = void;

    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };

  std::mutex mutex;
  std::unordered_map<std::string, std::vector<token_id>, hash, std::equal_to<>> words;

  bool find(std::string_view word, std::vector<token_id>& out) {
    std::lock_guard lock(mutex);
    auto found = words.find(word);
    if (found == words.end())
      return false;
    out.insert(out.end(), found->second.begin(), found->second.end());
    return true;
  }

  void keep(std::string_view word, const token_id* first, const token_id* last) {
    std::lock_guard lock(mutex);
    if (words.size() >= most_cached_words)
      words.clear();
    words.emplace(word, std::vector<token_id>(first, last));
  }
};

result<bpe> bpe::make(bpe_settings settings) {
  bpe made;
  made.settings_ = std::move(settings);
  made.cache_ = std::make_shared<cache>();
  if (const auto& unk = made.settings_.unk_token) {
    made.unk_ = made.id_of(*unk);
    if (!made.unk_)
      return error{errc::invalid_model,
                   fmt::format("model.unk_token is \"{}\", which model.vocab does not hold", *unk)};
  }
  for (int byte = 0; byte < 256; ++byte)
    made.byte_ids_.push_back(made.id_of(fmt::format("<0x{:02X}>", byte)));
  if (auto covered = made.check_coverage(); !covered)
    return covered.error();
  if (auto filled = made.fill_merges(); !filled)
    return filled.error();
  return made;
}

result<void> bpe::check_coverage() const {
  if (!settings_.merges.empty())
    return {};
  for (const auto& [piece, id] : settings_.vocabulary)
    if (piece.size() > utf8::length(piece.empty() ? ' ' : piece[0]) && !is_byte_piece(piece)
        && piece != settings_.unk_token)
      return error{errc::invalid_model,
                   fmt::format("model.merges is empty, but model.vocab ({} pieces) holds pieces of "
                               "several characters, such as \"{}\", that only merges can make",
                               settings_.vocabulary.size(),
                               piece)};
  return {};
}

result<void> bpe::fill_merges() {
  const auto& merges = settings_.merges;
  table_.resize(std::bit_ceil(2 * merges.size() + 2));
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    auto left_id = id_of(left), right_id = id_of(right);
    const auto& prefix = settings_.continuing_subword_prefix;
    std::string joined = left + right.substr(right.starts_with(prefix) ? prefix.size() : 0);
    auto joined_id = id_of(joined);
    if (!left_id || !right_id || !joined_id)
      return error{errc::invalid_model,
                   fmt::format("model.merges[{}] joins \"{}\" and \"{}\", but model.vocab does not "
                               "hold \"{}\"",
                               rank,
                               left,
                               right,
                               !left_id    ? left
                               : !right_id ? right
                                           : joined)};
    std::uint64_t pair = std::uint64_t{*left_id} << 32 | *right_id;
    std::size_t at = slot_of(pair, table_.size());
    while (table_[at].pair != empty && table_[at].pair != pair)
      at = (at + 1) & (table_.size() - 1);
    table_[at] = {pair, static_cast<std::uint32_t>(rank), *joined_id};
  }
  settings_.merges = {}; // the table has it all
  return {};
}

const bpe::merge* bpe::find_merge(token_id left, token_id right) const noexcept {
  std::uint64_t pair = std::uint64_t{left} << 32 | right;
  std::size_t at = slot_of(pair, table_.size());
  while (table_[at].pair != empty) {
    if (table_[at].pair == pair)
      return &table_[at];
    at = (at + 1) & (table_.size() - 1);
  }
  return nullptr;
}

std::optional<token_id> bpe::id_of(const std::string& piece) const {
  auto found = settings_.vocabulary.find(piece);
  if (found == settings_.vocabulary.end())
    return std::nullopt;
  return found->second;
}

void bpe::encode(std::string_view word, std::vector<token_id>& out) const {
  if (settings_.ignore_merges)
    if (auto whole = id_of(std::string(word))) {
      out.push_back(*whole);
      return;
    }
  bool cached = word.size() <= longest_cached_word;
  if (cached && cache_->find(word, out))
    return;
  auto symbols = characters_of(word);
  join(symbols);
  std::size_t first = out.size();
  for (const auto& left : symbols)
    if (left.alive)
      out.push_back(left.id);
  if (cached)
    cache_->keep(word, out.data() + first, out.data() + out.size());
}

std::vector<bpe::symbol> bpe::characters_of(std::string_view word) const {
  std::vector<symbol> symbols;
  symbols.reserve(word.size());
  std::optional<token_id> unknown; // not yet added: fuse_unk may extend it
  auto add = [&](token_id id) { symbols.push_back({id, -1, -1}); };
  for (std::size_t at = 0; at < word.size();) {
    std::size_t bytes = utf8::length(word[at]);
    std::string piece(word.substr(at, bytes));
    if (at > 0)
      piece.insert(0, settings_.continuing_subword_prefix);
    at += bytes;
    if (at == word.size())
      piece += settings_.end_of_word_suffix;
    if (auto id = id_of(piece)) {
      if (unknown)
        add(*std::exchange(unknown, std::nullopt));
      add(*id);
      continue;
    }
    if (settings_.byte_fallback && add_bytes(piece, symbols))
      continue;
    if (unknown && !settings_.fuse_unk)
      add(*unknown);
    unknown = unk_;
  }
  if (unknown)
    add(*unknown);
  for (std::size_t at = 0; at < symbols.size(); ++at) {
    symbols[at].previous = static_cast<std::int32_t>(at) - 1;
    symbols[at].next = at + 1 < symbols.size() ? static_cast<std::int32_t>(at) + 1 : -1;
  }
  return symbols;
}

bool bpe::add_bytes(std::string_view character, std::vector<symbol>& symbols) const {
  for (char byte : character)
    if (!byte_ids_[static_cast<unsigned char>(byte)])
      return false;
  for (char byte : character)
    symbols.push_back({*byte_ids_[static_cast<unsigned char>(byte)], -1, -1});
  return true;
}

void bpe::join(std::vector<symbol>& symbols) const {
  // The rank comes first in the key, then the position, so equal merges are made from the left.
  struct wish {
    std::uint64_t rank_and_left;
    token_id made;

    bool operator>(const wish& other) const noexcept { return rank_and_left > other.rank_and_left; }
  };

  std::priority_queue<wish, std::vector<wish>, std::greater<>> queue;
  auto offer = [&](std::int32_t left) {
    if (left < 0 || symbols[left].next < 0)
      return;
    if (const auto* found = find_merge(symbols[left].id, symbols[symbols[left].next].id))
      queue.push(
        {std::uint64_t{found->rank} << 32 | static_cast<std::uint32_t>(left), found->made});
  };
  for (std::size_t at = 0; at + 1 < symbols.size(); ++at)
    offer(static_cast<std::int32_t>(at));
  while (!queue.empty()) {
    wish top = queue.top();
    queue.pop();
    auto left = static_cast<std::int32_t>(top.rank_and_left & 0xFFFFFFFF);
    auto& kept = symbols[left];
    if (!kept.alive || kept.next < 0)
      continue;
    auto& gone = symbols[kept.next];
    const auto* still = find_merge(kept.id, gone.id);
    if (still == nullptr || still->made != top.made) // the neighbours have changed since
      continue;
    kept.id = top.made;
    kept.next = gone.next;
    gone.alive = false;
    if (gone.next >= 0)
      symbols[gone.next].previous = left;
    offer(kept.previous);
    offer(left);
  }
}

} // namespace troupe::compute
