#pragma once
// Walks the tree of a template and writes its text.

#include "compute/chat/run.hpp"
#include "compute/chat/scopes.hpp"
#include "compute/chat/syntax.hpp"

#include <string>

namespace troupe::compute::chat {

/// One rendering; used by one thread, once.
class interpreter {
public:
  /// `variables` are what the template finds beside the functions of globals.hpp.
  interpreter(const syntax_tree& tree, run& running, const dictionary& variables);

  /// invalid_argument, unsupported or overloaded, with "line L, column C: ...".
  result<std::string> render();

  value evaluate(const expression& what);

  /// Calls what `callee` holds. `name` is for messages.
  value
  call_value(position at, const value& callee, std::string_view name, const call_values& with);

  /// The text of a macro's block with its parameters in a scope of their own, above `closure`.
  value call_macro(position at, const macro& what, scopes::frame closure, const call_values& with);

private:
  enum class jump : std::uint8_t { none, next, leave }; ///< Of a loop.

  /// Depth of recursion; a failure where it is too much.
  class step;

  value evaluate_known(position at, const literal& what);
  value evaluate_known(position at, const variable& what);
  value evaluate_known(position at, const list_of& what);
  value evaluate_known(position at, const dictionary_of& what);
  value evaluate_known(position at, const unary& what);
  value evaluate_known(position at, const binary& what);
  value evaluate_known(position at, const logical& what);
  value evaluate_known(position at, const concatenation& what);
  value evaluate_known(position at, const comparison& what);
  value evaluate_known(position at, const conditional& what);
  value evaluate_known(position at, const attribute& what);
  value evaluate_known(position at, const element& what);
  value evaluate_known(position at, const slice& what);
  value evaluate_known(position at, const call& what);
  value evaluate_known(position at, const filter& what);
  value evaluate_known(position at, const test& what);

  value optional(const expression* what) { return what != nullptr ? evaluate(*what) : value(); }

  call_values evaluate_arguments(const arguments& with);
  value evaluate_call(position at, const call& what, call_values with);

  jump run_body(const body& all);
  jump run_statement(const statement& what);
  jump run_known(position at, const text_out& what);
  jump run_known(position at, const value_out& what);
  jump run_known(position at, const assignment& what);
  jump run_known(position at, const block_assignment& what);
  jump run_known(position at, const condition& what);
  jump run_known(position at, const loop& what);
  jump run_known(position at, const macro& what);
  jump run_known(position at, const call_block& what);
  jump run_known(position at, const filter_block& what);
  jump run_known(position at, const scope_block& what);
  jump run_known(position at, const evaluation& what);
  jump run_known(position at, const loop_break&);
  jump run_known(position at, const loop_continue&);

  value::items loop_items(position at, const loop& what);

  /// The text that a block writes, in a scope of its own, through the filters if there are any.
  value block_text(position at, const body& block, const expression* filters);
  value make_macro(const macro& what);
  void assign(const target& to, const value& what);
  void write(position at, std::string_view text);

  const syntax_tree& tree_;
  run& run_;
  scopes scopes_;
  std::string out_;
  value filtered_; ///< What the filters of a block start from.
  std::size_t depth_ = 0;
};

} // namespace troupe::compute::chat
