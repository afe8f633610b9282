#include "compute/chat/filters.hpp"
#include "compute/chat/known_names.hpp"
#include "compute/chat/operators.hpp"
#include "compute/chat/unicode.hpp"

#include <algorithm>
#include <array>

namespace troupe::compute::chat {

namespace {

using question = bool (*)(run&, position, const value&, const value&);

struct named_test {
  std::string_view name;
  bool has_argument;
  question ask;
};

bool is_callable(const value& of) noexcept {
  return of.as_object() != nullptr;
}

bool is_sequence(const value& of) noexcept {
  return of.as_text() != nullptr || of.as_list() != nullptr || of.as_dictionary() != nullptr
         || of.is_undefined();
}

std::int64_t remainder(run& running, position at, const value& of, const value& by) {
  std::int64_t number = 0, divisor = 0;
  if (!running.expect_integer(at, of, "what is tested", number)
      || !running.expect_integer(at, by, "the divisor", divisor))
    return 1;
  if (divisor == 0) {
    running.fail(at, "division by zero");
    return 1;
  }
  return divisor == -1 ? 0 : number % divisor;
}

template <comparison_sign Sign>
bool compared(run& running, position at, const value& of, const value& other) {
  return apply(running, at, Sign, of, other);
}

bool same(run& running, position, const value& of, const value& other) {
  return type_name(of) == type_name(other) && equal(of, other, running.work());
}

template <bool (*Is)(std::string_view) noexcept>
bool cased(run& running, position at, const value& of, const value&) {
  return Is(running.printed(at, of));
}

// clang-format off
constexpr std::array<named_test, 32> tests = {{
  {"boolean", false, [](run&, position, const value& of, const value&) { return of.as_boolean() != nullptr; }},
  {"callable", false, [](run&, position, const value& of, const value&) { return is_callable(of); }},
  {"defined", false, [](run&, position, const value& of, const value&) { return !of.is_undefined(); }},
  {"divisibleby", true, [](run& running, position at, const value& of, const value& by) { return remainder(running, at, of, by) == 0; }},
  {"eq", true, compared<comparison_sign::equal>},
  {"equalto", true, compared<comparison_sign::equal>},
  {"even", false, [](run& running, position at, const value& of, const value&) { return remainder(running, at, of, 2) == 0; }},
  {"false", false, [](run&, position, const value& of, const value&) { return of.as_boolean() != nullptr && !*of.as_boolean(); }},
  {"float", false, [](run&, position, const value& of, const value&) { return of.as_real() != nullptr; }},
  {"ge", true, compared<comparison_sign::at_least>},
  {"greaterthan", true, compared<comparison_sign::more>},
  {"gt", true, compared<comparison_sign::more>},
  {"in", true, compared<comparison_sign::in>},
  {"integer", false, [](run&, position, const value& of, const value&) { return of.as_integer() != nullptr; }},
  {"iterable", false, [](run&, position, const value& of, const value&) { return is_sequence(of); }},
  {"le", true, compared<comparison_sign::at_most>},
  {"lessthan", true, compared<comparison_sign::less>},
  {"lower", false, cased<is_lower>},
  {"lt", true, compared<comparison_sign::less>},
  {"mapping", false, [](run&, position, const value& of, const value&) { return of.as_dictionary() != nullptr; }},
  {"ne", true, compared<comparison_sign::unequal>},
  {"none", false, [](run&, position, const value& of, const value&) { return of.is_none(); }},
  {"number", false, [](run&, position, const value& of, const value&) { return of.is_number() || of.as_boolean() != nullptr; }},
  {"odd", false, [](run& running, position at, const value& of, const value&) { return remainder(running, at, of, 2) != 0; }},
  {"sameas", true, same},
  {"sequence", false, [](run&, position, const value& of, const value&) { return is_sequence(of); }},
  {"string", false, [](run&, position, const value& of, const value&) { return of.as_text() != nullptr; }},
  {"true", false, [](run&, position, const value& of, const value&) { return of.as_boolean() != nullptr && *of.as_boolean(); }},
  {"undefined", false, [](run&, position, const value& of, const value&) { return of.is_undefined(); }},
  {"upper", false, cased<is_upper>},
  {"filter", false, [](run&, position, const value& of, const value&) { return of.as_text() != nullptr && is_filter(*of.as_text()); }},
  {"test", false, [](run&, position, const value& of, const value&) { return of.as_text() != nullptr && is_test(*of.as_text()); }},
}};

// clang-format on

const named_test* find(std::string_view name) noexcept {
  auto found =
    std::find_if(tests.begin(), tests.end(), [&](const auto& one) { return one.name == name; });
  return found == tests.end() ? nullptr : &*found;
}

} // namespace

bool is_test(std::string_view name) noexcept {
  return find(name) != nullptr;
}

std::string test_names() {
  std::string all;
  for (const auto& one : tests)
    all.append(all.empty() ? "" : ", ").append(one.name);
  return all;
}

bool call_test(
  run& running, position at, std::string_view name, const value& of, const call_values& with) {
  if (running.failed())
    return false;
  auto found = find(name);
  if (!found->has_argument) {
    parameters given(running, at, name, with, {});
    return !running.failed() && found->ask(running, at, of, {});
  }
  parameters given(running, at, name, with, {"other"});
  auto other = given.required(0);
  return !running.failed() && found->ask(running, at, of, other);
}

} // namespace troupe::compute::chat
