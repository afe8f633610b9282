#pragma once
// A template as a tree. All nodes live in one place and point at each other, so that no depth of
// nesting can exhaust the stack when the tree goes.

#include "compute/chat/tokens.hpp"
#include "compute/chat/value.hpp"

#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::compute::chat {

struct expression;
struct statement;

using body = std::vector<const statement*>;

struct arguments {
  std::vector<const expression*> positional;
  std::vector<std::pair<std::string, const expression*>> named;
};

struct literal {
  value content;
};

struct variable {
  std::string name;
};

struct list_of {
  std::vector<const expression*> items;
};

struct dictionary_of {
  std::vector<std::pair<const expression*, const expression*>> entries;
};

enum class unary_sign : std::uint8_t { minus, plus, inverse };

struct unary {
  unary_sign sign;
  const expression* operand;
};

enum class binary_sign : std::uint8_t { add, subtract, multiply, divide, floor, modulo, power };

struct binary {
  binary_sign sign;
  const expression *left, *right;
};

/// `and`, `or`: the value of the operand that decides.
struct logical {
  bool is_and;
  const expression *left, *right;
};

/// `~`
struct concatenation {
  std::vector<const expression*> parts;
};

enum class comparison_sign : std::uint8_t {
  equal,
  unequal,
  less,
  at_most,
  more,
  at_least,
  in,
  not_in
};

/// `a < b <= c`
struct comparison {
  const expression* first;
  std::vector<std::pair<comparison_sign, const expression*>> rest;
};

/// `a if b else c`; no `otherwise`: undefined.
struct conditional {
  const expression *condition, *then, *otherwise;
};

struct attribute {
  const expression* of;
  std::string name;
};

struct element {
  const expression *of, *key;
};

/// Parts that are not written are null.
struct slice {
  const expression *of, *start, *stop, *step;
};

struct call {
  const expression* callee;
  arguments with;
};

/// `of|name(with)`. No `of`: what a filter block holds.
struct filter {
  const expression* of;
  std::string name;
  arguments with;
};

/// `of is name with`
struct test {
  const expression* of;
  std::string name;
  arguments with;
  bool negated;
};

struct expression {
  position at;
  std::variant<literal,
               variable,
               list_of,
               dictionary_of,
               unary,
               binary,
               logical,
               concatenation,
               comparison,
               conditional,
               attribute,
               element,
               slice,
               call,
               filter,
               test>
    what;
};

struct text_out {
  std::string text;
};

struct value_out {
  const expression* what;
};

/// What a value is assigned to: a name, an attribute of a namespace, or several of them.
struct target {
  position at;
  std::vector<std::string> names;
  bool several = false;  ///< The value is taken apart, be it into one.
  std::string attribute; ///< Of the one name; empty: the name itself.
};

struct assignment {
  target to;
  const expression* what;
};

/// `set` with a block: its text, through the filters if there are any.
struct block_assignment {
  target to;
  const expression* filters;
  body block;
};

struct condition {
  /// Each with its block; `else` has none.
  std::vector<std::pair<const expression*, body>> branches;
};

struct loop {
  target to;
  const expression *over, *only_if;
  body each, otherwise;
};

struct macro {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<const expression*> defaults; ///< Of the last parameters.
  body block;
};

/// `call(x) macro(...)`: the block is the macro's `caller`.
struct call_block {
  macro caller;
  const expression* what;
};

struct filter_block {
  const expression* filters;
  body block;
};

/// Names for the block alone; a `generation` block has none.
struct scope_block {
  std::vector<std::pair<target, const expression*>> names;
  body block;
};

/// The expression's value is of no interest.
struct evaluation {
  const expression* what;
};

struct loop_break {};

struct loop_continue {};

struct statement {
  position at;
  std::variant<text_out,
               value_out,
               assignment,
               block_assignment,
               condition,
               loop,
               macro,
               call_block,
               filter_block,
               scope_block,
               evaluation,
               loop_break,
               loop_continue>
    what;
};

struct syntax_tree {
  std::deque<expression> expressions;
  std::deque<statement> statements;
  body root;
};

} // namespace troupe::compute::chat
