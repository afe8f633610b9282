#include "compute/chat/filters.hpp"
#include "compute/chat/interpreter.hpp"
#include "compute/chat/interpreter_step.hpp"
#include "compute/chat/methods.hpp"
#include "compute/chat/operators.hpp"

#include <fmt/format.h>

namespace troupe::compute::chat {

namespace {

/// A method that is named, but not called yet.
class bound_method : public object {
public:
  bound_method(value of, std::string_view name) : of_(std::move(of)), name_(name) {}

  std::optional<value> call(run& running, position at, const call_values& with) override {
    return call_method(running, at, of_, name_, with);
  }

private:
  value of_;
  std::string name_;
};

/// How a callee is called in messages.
std::string_view name_of(const expression& callee) {
  if (auto named = std::get_if<variable>(&callee.what))
    return named->name;
  if (auto named = std::get_if<attribute>(&callee.what))
    return named->name;
  return "what is called here";
}

} // namespace

value interpreter::evaluate(const expression& what) {
  step deeper(*this, what.at);
  if (!deeper)
    return {};
  return std::visit([&](const auto& known) { return evaluate_known(what.at, known); }, what.what);
}

value interpreter::evaluate_known(position, const literal& what) {
  return what.content;
}

value interpreter::evaluate_known(position, const variable& what) {
  auto found = scopes_.find(what.name);
  return found != nullptr ? *found : value(value::missing{&what.name});
}

value interpreter::evaluate_known(position at, const list_of& what) {
  value::items made;
  for (auto item : what.items)
    made.push_back(evaluate(*item));
  return run_.list(at, std::move(made));
}

value interpreter::evaluate_known(position at, const dictionary_of& what) {
  dictionary made;
  for (auto [key, content] : what.entries) {
    auto name = evaluate(*key);
    if (auto text = run_.expect_text(key->at, name, "the key of a dictionary"))
      made.set(*text, evaluate(*content));
  }
  return run_.entries(at, std::move(made));
}

value interpreter::evaluate_known(position at, const unary& what) {
  return apply(run_, at, what.sign, evaluate(*what.operand));
}

value interpreter::evaluate_known(position at, const binary& what) {
  auto left = evaluate(*what.left);
  return apply(run_, at, what.sign, left, evaluate(*what.right));
}

value interpreter::evaluate_known(position, const logical& what) {
  auto left = evaluate(*what.left);
  return is_true(left) == what.is_and ? evaluate(*what.right) : left;
}

value interpreter::evaluate_known(position at, const concatenation& what) {
  std::string made;
  for (auto part : what.parts)
    made += run_.printed(at, evaluate(*part));
  return run_.text(at, std::move(made));
}

value interpreter::evaluate_known(position at, const comparison& what) {
  auto left = evaluate(*what.first);
  for (auto [sign, operand] : what.rest) {
    auto right = evaluate(*operand);
    if (!apply(run_, at, sign, left, right))
      return false;
    left = std::move(right);
  }
  return true;
}

value interpreter::evaluate_known(position, const conditional& what) {
  return is_true(evaluate(*what.condition)) ? evaluate(*what.then) : optional(what.otherwise);
}

value interpreter::evaluate_known(position at, const attribute& what) {
  auto of = evaluate(*what.of);
  if (has_method(of, what.name) && run_.spend(at, 4 * run::node_cost))
    return value(run_.keep(std::make_unique<bound_method>(of, what.name)));
  return element_of(run_, at, of, value(what.name), &what.name);
}

value interpreter::evaluate_known(position at, const element& what) {
  auto of = evaluate(*what.of);
  return element_of(run_, at, of, evaluate(*what.key));
}

value interpreter::evaluate_known(position at, const slice& what) {
  auto of = evaluate(*what.of), start = optional(what.start), stop = optional(what.stop);
  return slice_of(run_, at, of, start, stop, optional(what.step));
}

value interpreter::evaluate_known(position at, const filter& what) {
  auto of = what.of != nullptr ? evaluate(*what.of) : filtered_;
  return call_filter(run_, at, what.name, of, evaluate_arguments(what.with));
}

value interpreter::evaluate_known(position at, const test& what) {
  auto of = evaluate(*what.of);
  return call_test(run_, at, what.name, of, evaluate_arguments(what.with)) != what.negated;
}

value interpreter::evaluate_known(position at, const call& what) {
  return evaluate_call(at, what, evaluate_arguments(what.with));
}

call_values interpreter::evaluate_arguments(const arguments& with) {
  call_values made;
  for (auto argument : with.positional)
    made.positional.push_back(evaluate(*argument));
  for (const auto& [name, argument] : with.named)
    made.named.emplace_back(name, evaluate(*argument));
  return made;
}

value interpreter::evaluate_call(position at, const call& what, call_values with) {
  auto member = std::get_if<attribute>(&what.callee->what);
  if (member == nullptr)
    return call_value(at, evaluate(*what.callee), name_of(*what.callee), with);
  auto of = evaluate(*member->of);
  if (has_method(of, member->name))
    return call_method(run_, at, of, member->name, with);
  if (auto held = of.as_object())
    if (auto made = held->call_member(run_, at, member->name, with))
      return *made;
  auto callee = element_of(run_, at, of, value(member->name), &member->name);
  if (callee.is_undefined())
    return call_method(run_, at, of, member->name, with); // says what is missing
  return call_value(at, callee, member->name, with);
}

value interpreter::call_value(position at,
                              const value& callee,
                              std::string_view name,
                              const call_values& with) {
  if (run_.failed())
    return {};
  if (callee.is_undefined())
    return run_.fail_undefined(at, callee);
  if (auto held = callee.as_object())
    if (auto made = held->call(run_, at, with))
      return *made;
  return run_.fail(
    at, fmt::format("{} is of type {}, which cannot be called", name, type_name(callee)));
}

} // namespace troupe::compute::chat
