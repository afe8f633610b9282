#pragma once
// Where a parser stands in its tokens, and the first thing that was wrong.

#include "compute/chat/tokens.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::compute::chat {

/// After the first problem only `end` is left to read, so that every loop of a parser ends.
class token_reader {
public:
  explicit token_reader(std::vector<token> tokens) : tokens_(std::move(tokens)) {}

  const token& now() const { return tokens_[at_]; }

  const token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }

  position place() const { return now().at; }

  bool at_end() const { return now().kind == token_kind::end; }

  bool is(token_kind kind) const { return now().kind == kind; }

  bool is_sign(std::string_view sign) const { return is(token_kind::sign) && now().text == sign; }

  bool is_name(std::string_view name) const { return is(token_kind::name) && now().text == name; }

  /// The token, which is then behind.
  token take() {
    token taken = now();
    if (!at_end())
      ++at_;
    return taken;
  }

  bool take_sign(std::string_view sign) { return is_sign(sign) && (take(), true); }

  bool take_name(std::string_view name) { return is_name(name) && (take(), true); }

  void expect_sign(std::string_view sign);
  void expect_name(std::string_view name);
  void expect(token_kind kind, std::string_view what);

  /// The name; empty if there is none, which is said.
  std::string expect_any_name(std::string_view what);

  /// "found 'x', but ... belongs here"
  void unexpected(std::string_view wanted);

  void fail(position where, std::string_view sentence, errc code = errc::invalid_model);

  const std::optional<error>& problem() const { return problem_; }

private:
  std::vector<token> tokens_;
  std::size_t at_ = 0;
  std::optional<error> problem_;
};

} // namespace troupe::compute::chat
