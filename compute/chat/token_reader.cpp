#include "compute/chat/token_reader.hpp"

#include <fmt/format.h>

namespace troupe::compute::chat {

namespace {

std::string spelled(const token& what) {
  switch (what.kind) {
  case token_kind::text: return "text";
  case token_kind::block_begin: return "'{%'";
  case token_kind::block_end: return "'%}'";
  case token_kind::variable_begin: return "'{{'";
  case token_kind::variable_end: return "'}}'";
  case token_kind::string: return "a text in quotes";
  case token_kind::end: return "the end of the template";
  default: return "'" + what.text.substr(0, 40) + "'";
  }
}

} // namespace

void token_reader::fail(position where, std::string_view sentence, errc code) {
  if (!problem_)
    problem_ = error_at(where, sentence, code);
  at_ = tokens_.size() - 1;
}

void token_reader::unexpected(std::string_view wanted) {
  fail(place(), fmt::format("found {}, but {} belongs here", spelled(now()), wanted));
}

void token_reader::expect_sign(std::string_view sign) {
  if (!take_sign(sign))
    unexpected(fmt::format("'{}'", sign));
}

void token_reader::expect_name(std::string_view name) {
  if (!take_name(name))
    unexpected(fmt::format("'{}'", name));
}

void token_reader::expect(token_kind kind, std::string_view what) {
  if (is(kind))
    take();
  else
    unexpected(what);
}

std::string token_reader::expect_any_name(std::string_view what) {
  if (is(token_kind::name))
    return take().text;
  unexpected(what);
  return {};
}

} // namespace troupe::compute::chat
