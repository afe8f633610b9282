#include "compute/chat/parser.hpp"

#include "compute/chat/expression_parser.hpp"

#include <fmt/format.h>

#include <initializer_list>

namespace troupe::compute::chat {

namespace {

class statement_parser {
public:
  statement_parser(token_reader& reader, syntax_tree& tree)
    : reader_(reader), tree_(tree), expressions_(reader, tree) {}

  /// Until a block that starts with one of `ends`, which stays to be read, or the end.
  body parse_body(std::initializer_list<std::string_view> ends) {
    expression_parser::nesting open(expressions_);
    body all;
    while (!reader_.at_end()) {
      auto at = reader_.place();
      if (reader_.is(token_kind::text)) {
        all.push_back(make(at, text_out{reader_.take().text}));
      } else if (reader_.is(token_kind::variable_begin)) {
        reader_.take();
        all.push_back(make(at, value_out{expressions_.parse_tuple()}));
        reader_.expect(token_kind::variable_end, "'}}'");
      } else {
        for (auto end : ends)
          if (reader_.next().kind == token_kind::name && reader_.next().text == end)
            return all;
        reader_.expect(token_kind::block_begin, "'{%'");
        parse_block(at, all);
      }
    }
    if (ends.size() > 0)
      reader_.unexpected(fmt::format("'{{% {} %}}'", *(ends.end() - 1)));
    return all;
  }

private:
  template <class What>
  const statement* make(position at, What what) {
    return &tree_.statements.emplace_back(statement{at, std::move(what)});
  }

  void end_block() { reader_.expect(token_kind::block_end, "'%}'"); }

  void end_body(std::string_view name) {
    reader_.expect(token_kind::block_begin, "'{%'");
    reader_.expect_name(name);
    if (name == "endmacro" && reader_.is(token_kind::name))
      reader_.take(); // "endmacro name" is allowed
    end_block();
  }

  void parse_block(position at, body& all) {
    auto name = reader_.expect_any_name("the name of a block");
    if (name == "if")
      return all.push_back(make(at, parse_if()));
    if (name == "for")
      return all.push_back(make(at, parse_for()));
    if (name == "set")
      return all.push_back(parse_set(at));
    if (name == "macro")
      return all.push_back(make(at, parse_macro()));
    if (name == "call")
      return all.push_back(make(at, parse_call()));
    if (name == "filter")
      return all.push_back(make(at, parse_filter()));
    if (name == "with" || name == "generation")
      return all.push_back(make(at, parse_scope(name)));
    if (name == "do")
      all.push_back(make(at, evaluation{expressions_.parse_tuple()}));
    else if (name == "break" || name == "continue")
      all.push_back(parse_jump(at, name == "break"));
    else if (!name.empty())
      reader_.fail(at,
                   fmt::format("no block '{}' here; there are: if, for, set, macro, call, filter, "
                               "with, do, break, continue, raw, generation",
                               name),
                   errc::unsupported);
    end_block();
  }

  const statement* parse_jump(position at, bool is_break) {
    if (loops_ == 0)
      reader_.fail(at, "break and continue belong inside of a loop");
    return is_break ? make(at, loop_break{}) : make(at, loop_continue{});
  }

  condition parse_if() {
    condition all;
    auto what = expressions_.parse_tuple();
    end_block();
    all.branches.emplace_back(what, parse_body({"elif", "else", "endif"}));
    while (!reader_.at_end() && reader_.next().text == "elif") {
      reader_.take();
      reader_.take();
      what = expressions_.parse_tuple();
      end_block();
      all.branches.emplace_back(what, parse_body({"elif", "else", "endif"}));
    }
    if (reader_.next().text == "else" && !reader_.at_end()) {
      reader_.take();
      reader_.take();
      end_block();
      all.branches.emplace_back(nullptr, parse_body({"endif"}));
    }
    end_body("endif");
    return all;
  }

  target parse_target(bool attribute_too) {
    target to;
    to.at = reader_.place();
    bool bracket = reader_.take_sign("(");
    do {
      if (reader_.is_name("in") || reader_.is_sign(")"))
        break; // a comma may end the list
      to.names.push_back(reader_.expect_any_name("a name to assign to"));
      to.several |= reader_.is_sign(",");
    } while (reader_.take_sign(","));
    if (to.names.empty())
      reader_.unexpected("a name to assign to");
    if (bracket)
      reader_.expect_sign(")");
    if (attribute_too && to.names.size() == 1 && reader_.take_sign("."))
      to.attribute = reader_.expect_any_name("the name of an attribute");
    for (const auto& name : to.names)
      for (auto constant : {"true", "false", "none", "True", "False", "None"})
        if (name == constant)
          reader_.fail(to.at, fmt::format("'{}' cannot be assigned to", name));
    return to;
  }

  loop parse_for() {
    loop all;
    all.to = parse_target(false);
    reader_.expect_name("in");
    all.over = parse_iterable();
    all.only_if = reader_.take_name("if") ? expressions_.parse() : nullptr;
    if (reader_.is_name("recursive"))
      reader_.fail(reader_.place(), "recursive loops are not supported", errc::unsupported);
    end_block();
    ++loops_;
    all.each = parse_body({"else", "endfor"});
    --loops_;
    if (reader_.next().text == "else" && !reader_.at_end()) {
      reader_.take();
      reader_.take();
      end_block();
      all.otherwise = parse_body({"endfor"});
    }
    end_body("endfor");
    return all;
  }

  /// No "a if b else c": the "if" is the loop's.
  const expression* parse_iterable() {
    auto at = reader_.place();
    auto first = expressions_.parse(false);
    if (!reader_.is_sign(","))
      return first;
    list_of items{{first}};
    while (reader_.take_sign(","))
      items.items.push_back(expressions_.parse(false));
    return expressions_.make(at, std::move(items));
  }

  const statement* parse_set(position at) {
    auto to = parse_target(true);
    if (reader_.take_sign("=")) {
      auto what = expressions_.parse_tuple();
      end_block();
      return make(at, assignment{std::move(to), what});
    }
    auto filters = reader_.is_sign("|") ? expressions_.parse_filters(nullptr, true) : nullptr;
    end_block();
    auto block = parse_body({"endset"});
    end_body("endset");
    return make(at, block_assignment{std::move(to), filters, std::move(block)});
  }

  void parse_parameters(macro& all) {
    reader_.expect_sign("(");
    while (!reader_.at_end() && !reader_.is_sign(")")) {
      all.parameters.push_back(reader_.expect_any_name("the name of a parameter"));
      if (reader_.take_sign("="))
        all.defaults.push_back(expressions_.parse());
      else if (!all.defaults.empty())
        reader_.unexpected("'=': parameters after one with a default need one too");
      if (!reader_.take_sign(","))
        break;
    }
    reader_.expect_sign(")");
  }

  void parse_macro_body(macro& all, std::string_view end) {
    auto outer_loops = std::exchange(loops_, 0);
    all.block = parse_body({end});
    loops_ = outer_loops;
    end_body(end);
  }

  macro parse_macro() {
    macro all;
    all.name = reader_.expect_any_name("the name of a macro");
    parse_parameters(all);
    end_block();
    parse_macro_body(all, "endmacro");
    return all;
  }

  call_block parse_call() {
    call_block all;
    all.caller.name = "caller";
    if (reader_.is_sign("("))
      parse_parameters(all.caller);
    auto at = reader_.place();
    all.what = expressions_.parse();
    if (!std::holds_alternative<call>(all.what->what))
      reader_.fail(at, "a call of a macro belongs here");
    end_block();
    parse_macro_body(all.caller, "endcall");
    return all;
  }

  filter_block parse_filter() {
    filter_block all;
    all.filters = expressions_.parse_filters(nullptr, false);
    end_block();
    all.block = parse_body({"endfilter"});
    end_body("endfilter");
    return all;
  }

  scope_block parse_scope(const std::string& name) {
    scope_block all;
    while (name == "with" && reader_.is(token_kind::name)) {
      auto to = parse_target(false);
      reader_.expect_sign("=");
      auto what = expressions_.parse();
      all.names.emplace_back(std::move(to), what);
      if (!reader_.take_sign(","))
        break;
    }
    end_block();
    std::string_view end = name == "with" ? "endwith" : "endgeneration";
    all.block = parse_body({end});
    end_body(end);
    return all;
  }

  token_reader& reader_;
  syntax_tree& tree_;
  expression_parser expressions_;
  std::size_t loops_ = 0; ///< That are open.
};

} // namespace

result<std::unique_ptr<const syntax_tree>> parse_template(std::string_view source) {
  auto tokens = cut_tokens(source);
  if (!tokens)
    return tokens.error();
  auto tree = std::make_unique<syntax_tree>();
  token_reader reader(std::move(*tokens));
  tree->root = statement_parser(reader, *tree).parse_body({});
  if (reader.problem())
    return *reader.problem();
  return std::unique_ptr<const syntax_tree>(std::move(tree));
}

} // namespace troupe::compute::chat
