#pragma once
// The expressions of a template, by Jinja's precedence: "a if b else c", or, and, not, comparisons,
// + and -, ~, * / // and %, **, signs, and tightest: attributes, calls, filters and tests.

#include "compute/chat/syntax.hpp"
#include "compute/chat/token_reader.hpp"

#include <utility>

namespace troupe::compute::chat {

/// Every function returns a node, also after a problem, which the reader remembers.
class expression_parser {
public:
  expression_parser(token_reader& reader, syntax_tree& tree) : reader_(reader), tree_(tree) {}

  /// Several with commas between them are a list.
  const expression* parse_tuple();

  /// One, with "a if b else c" where `conditional`.
  const expression* parse(bool conditional = true);

  /// "|upper|trim" after `of`, which is null for the text of a block; the first has no "|" there.
  const expression* parse_filters(const expression* of, bool first_has_bar);

  arguments parse_arguments();

  template <class What>
  const expression* make(position at, What what) {
    return &tree_.expressions.emplace_back(expression{at, std::move(what)});
  }

  /// Counts what is open; says a problem where it is too much for the stack.
  class nesting {
  public:
    explicit nesting(expression_parser& parser);

    ~nesting() { --parser_.depth_; }

    nesting(const nesting&) = delete;
    nesting& operator=(const nesting&) = delete;

  private:
    expression_parser& parser_;
  };

private:
  const expression* parse_or();
  const expression* parse_and();
  const expression* parse_not();
  const expression* parse_comparison();
  const expression* parse_sum();
  const expression* parse_concatenation();
  const expression* parse_product();
  const expression* parse_power();
  const expression* parse_unary(bool with_filters);
  const expression* parse_primary();
  const expression* parse_number();
  const expression* parse_list(position at);
  const expression* parse_dictionary(position at);
  const expression* parse_postfix(const expression* of);
  const expression* parse_subscript(const expression* of, position at);
  const expression* parse_test(const expression* of);
  bool take_comparison(comparison_sign& sign);
  bool starts_test_argument() const;

  token_reader& reader_;
  syntax_tree& tree_;
  std::size_t depth_ = 0;
};

} // namespace troupe::compute::chat
