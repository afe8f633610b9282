#pragma once
// What each token id is: its piece as the model file spells it, its text, whether it is special.

#include "config/ids.hpp"
#include "config/result.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe::compute {

class decoder;

/// Dense table by id; ids that no file names are holes. Immutable once finished; any thread.
class vocabulary {
public:
  /// No vocabulary comes near; a larger id is a damaged file, and must not size a table.
  static constexpr token_id most_tokens = 1u << 22;

  /// invalid_model: an id of most_tokens or more, an id with two pieces.
  result<void> add(token_id id, std::string piece);

  /// The token at `id`, which was added, is special: it is not shown with skip_special.
  void mark_special(token_id id) { entries_[id].special = true; }

  /// Calculates the texts and the index by piece; nothing is added afterwards.
  result<void> finish(const decoder& how);

  /// Another text than the decoder's for one token, after finish().
  void set_text(token_id id, std::string text) { entries_[id].text = std::move(text); }

  /// Largest id + 1.
  std::size_t size() const noexcept { return entries_.size(); }

  bool holds(token_id id) const noexcept { return id < entries_.size() && entries_[id].present; }

  bool is_special(token_id id) const noexcept { return holds(id) && entries_[id].special; }

  /// Empty for a hole and beyond the end.
  std::string_view piece(token_id id) const noexcept;
  /// The bytes that the token adds to a text, where it is not the first.
  std::string_view text(token_id id) const noexcept;
  /// ... where it is the first, by the decoder's rule.
  std::string_view first_text(token_id id) const noexcept;

  std::optional<token_id> find(std::string_view piece) const;

private:
  struct entry {
    std::string piece, text;
    std::optional<std::string> first_text; ///< Where it differs.
    bool present = false, special = false;
  };

  std::vector<entry> entries_;
  std::unordered_map<std::string_view, token_id> ids_; ///< Views of the pieces.
};

} // namespace troupe::compute
