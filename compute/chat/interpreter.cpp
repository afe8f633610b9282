#include "compute/chat/interpreter.hpp"

#include "compute/chat/globals.hpp"
#include "compute/chat/interpreter_step.hpp"
#include "compute/chat/loop_object.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::compute::chat {

namespace {

class macro_object : public object {
public:
  macro_object(interpreter& owner, const macro& what, scopes::frame closure)
    : owner_(owner), what_(what), closure_(std::move(closure)) {}

  value attribute(std::string_view name) const override {
    return name == "name" ? value(what_.name) : value();
  }

  std::optional<value> call(run&, position at, const call_values& with) override {
    return owner_.call_macro(at, what_, closure_, with);
  }

private:
  interpreter& owner_;
  const macro& what_;
  scopes::frame closure_;
};

} // namespace

interpreter::interpreter(const syntax_tree& tree, run& running, const dictionary& variables)
  : tree_(tree), run_(running) {
  add_globals(run_, scopes_);
  for (const auto& [name, content] : variables.entries())
    scopes_.set(name, content);
}

result<std::string> interpreter::render() {
  run_body(tree_.root);
  run_.spend({}, 0);
  if (run_.failed())
    return run_.failure();
  return std::move(out_);
}

void interpreter::write(position at, std::string_view text) {
  if (out_.size() + text.size() > run_.limits().text_bytes)
    run_.fail(at,
              fmt::format("the template writes more than {} bytes", run_.limits().text_bytes),
              errc::overloaded);
  else if (run_.spend(at, text.size()))
    out_ += text;
}

interpreter::jump interpreter::run_body(const body& all) {
  for (auto one : all) {
    if (run_.failed())
      break;
    if (auto jumps = run_statement(*one); jumps != jump::none)
      return jumps;
  }
  return jump::none;
}

interpreter::jump interpreter::run_statement(const statement& what) {
  step deeper(*this, what.at);
  if (!deeper)
    return jump::none;
  return std::visit([&](const auto& known) { return run_known(what.at, known); }, what.what);
}

interpreter::jump interpreter::run_known(position at, const text_out& what) {
  write(at, what.text);
  return jump::none;
}

interpreter::jump interpreter::run_known(position at, const value_out& what) {
  auto shown = evaluate(*what.what);
  if (auto text = shown.as_text())
    write(at, *text);
  else
    write(at, run_.printed(at, shown));
  return jump::none;
}

void interpreter::assign(const target& to, const value& what) {
  if (run_.failed())
    return;
  if (!to.attribute.empty()) {
    auto held = scopes_.find(to.names[0]);
    if (held == nullptr || held->as_object() == nullptr
        || !held->as_object()->set(to.attribute, what))
      run_.fail(to.at,
                fmt::format(
                  "'{}' is no namespace, so '{}' of it cannot be set", to.names[0], to.attribute));
    return;
  }
  if (!to.several)
    return scopes_.set(to.names[0], what);
  auto parts = run_.items_of(to.at, what);
  if (parts.size() != to.names.size())
    run_.fail(to.at, fmt::format("{} values for {} names", parts.size(), to.names.size()));
  for (std::size_t at = 0; at < to.names.size() && !run_.failed(); ++at)
    scopes_.set(to.names[at], parts[at]);
}

interpreter::jump interpreter::run_known(position, const assignment& what) {
  assign(what.to, evaluate(*what.what));
  return jump::none;
}

value interpreter::block_text(position at, const body& block, const expression* filters) {
  auto outer = std::exchange(out_, {});
  scopes_.push();
  run_body(block);
  scopes_.pop();
  auto made = run_.text(at, std::exchange(out_, std::move(outer)));
  if (filters == nullptr)
    return made;
  auto outer_filtered = std::exchange(filtered_, made);
  made = evaluate(*filters);
  filtered_ = outer_filtered;
  return made;
}

interpreter::jump interpreter::run_known(position at, const block_assignment& what) {
  assign(what.to, block_text(at, what.block, what.filters));
  return jump::none;
}

interpreter::jump interpreter::run_known(position at, const filter_block& what) {
  write(at, run_.printed(at, block_text(at, what.block, what.filters)));
  return jump::none;
}

interpreter::jump interpreter::run_known(position, const condition& what) {
  for (const auto& [asked, block] : what.branches)
    if (asked == nullptr || is_true(evaluate(*asked)))
      return run_body(block);
  return jump::none;
}

value::items interpreter::loop_items(position at, const loop& what) {
  auto all = run_.items_of(at, evaluate(*what.over));
  if (what.only_if == nullptr)
    return all;
  value::items chosen;
  for (auto& item : all) {
    if (run_.failed())
      break;
    scopes_.push();
    assign(what.to, item);
    if (is_true(evaluate(*what.only_if)))
      chosen.push_back(std::move(item));
    scopes_.pop();
  }
  return chosen;
}

interpreter::jump interpreter::run_known(position at, const loop& what) {
  auto all = loop_items(at, what);
  if (all.empty()) {
    scopes_.push();
    auto jumps = run_body(what.otherwise);
    scopes_.pop();
    return jumps;
  }
  // Kept as long as the run: a template may put it into a namespace.
  if (!run_.spend(at, 8 * run::node_cost))
    return jump::none;
  auto state = run_.keep(std::make_unique<loop_object>(std::move(all)));
  for (; !state->over() && !run_.failed(); state->advance()) {
    scopes_.push();
    scopes_.set("loop", value(state));
    assign(what.to, state->item());
    auto jumps = run_body(what.each);
    scopes_.pop();
    if (jumps == jump::leave)
      break;
  }
  state->end();
  return jump::none;
}

interpreter::jump interpreter::run_known(position, const loop_break&) {
  return jump::leave;
}

interpreter::jump interpreter::run_known(position, const loop_continue&) {
  return jump::next;
}

value interpreter::make_macro(const macro& what) {
  return value(run_.keep(std::make_unique<macro_object>(*this, what, scopes_.visible())));
}

interpreter::jump interpreter::run_known(position at, const macro& what) {
  if (run_.spend(at, 16 * run::node_cost))
    scopes_.set(what.name, make_macro(what));
  return jump::none;
}

interpreter::jump interpreter::run_known(position at, const call_block& what) {
  const auto& called = std::get<call>(what.what->what);
  auto with = evaluate_arguments(called.with);
  if (!run_.spend(at, 16 * run::node_cost))
    return jump::none;
  with.named.emplace_back("caller", make_macro(what.caller));
  write(at, run_.printed(at, evaluate_call(what.what->at, called, std::move(with))));
  return jump::none;
}

interpreter::jump interpreter::run_known(position, const scope_block& what) {
  std::vector<value> contents; // seen from outside: one name does not see the next
  for (const auto& [to, content] : what.names)
    contents.push_back(evaluate(*content));
  scopes_.push();
  for (std::size_t at = 0; at < contents.size(); ++at)
    assign(what.names[at].first, contents[at]);
  auto jumps = run_body(what.block);
  scopes_.pop();
  return jumps;
}

interpreter::jump interpreter::run_known(position, const evaluation& what) {
  evaluate(*what.what);
  return jump::none;
}

value interpreter::call_macro(position at,
                              const macro& what,
                              scopes::frame closure,
                              const call_values& with) {
  step deeper(*this, at);
  if (!deeper)
    return {};
  std::vector<std::optional<value>> given(what.parameters.size());
  if (with.positional.size() > given.size())
    return run_.fail(at,
                     fmt::format("the macro {} takes at most {} arguments, not {}",
                                 what.name,
                                 given.size(),
                                 with.positional.size()));
  std::copy(with.positional.begin(), with.positional.end(), given.begin());
  for (const auto& [name, content] : with.named) {
    auto place = std::find(what.parameters.begin(), what.parameters.end(), name);
    if (place != what.parameters.end())
      given[static_cast<std::size_t>(place - what.parameters.begin())] = content;
    else if (name == "caller")
      closure[name] = content;
    else
      return run_.fail(at, fmt::format("the macro {} has no argument '{}'", what.name, name));
  }
  auto outer = std::exchange(out_, {});
  scopes_.push_wall(std::move(closure));
  std::size_t without_default = given.size() - what.defaults.size();
  for (std::size_t which = 0; which < given.size(); ++which) {
    const auto& name = what.parameters[which];
    if (!given[which] && which >= without_default)
      given[which] = evaluate(*what.defaults[which - without_default]);
    scopes_.set(name, given[which].value_or(value(value::missing{&name})));
  }
  run_body(what.block);
  scopes_.pop_wall();
  return run_.text(at, std::exchange(out_, std::move(outer)));
}

} // namespace troupe::compute::chat
