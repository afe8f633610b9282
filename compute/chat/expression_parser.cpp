#include "compute/chat/expression_parser.hpp"

#include "compute/chat/known_names.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace troupe::compute::chat {

namespace {

constexpr std::size_t most_open = 100; ///< Brackets and blocks inside of each other.

} // namespace

expression_parser::nesting::nesting(expression_parser& parser) : parser_(parser) {
  if (++parser_.depth_ > most_open)
    parser_.reader_.fail(parser_.reader_.place(),
                         fmt::format("it is nested more than {} deep", most_open),
                         errc::unsupported);
}

const expression* expression_parser::parse_tuple() {
  auto at = reader_.place();
  auto first = parse();
  if (!reader_.is_sign(","))
    return first;
  list_of items{{first}};
  while (reader_.take_sign(",")) {
    bool ends = reader_.is(token_kind::block_end) || reader_.is(token_kind::variable_end)
                || reader_.is_sign(")") || reader_.is_sign("=");
    if (ends)
      break;
    items.items.push_back(parse());
  }
  return make(at, std::move(items));
}

const expression* expression_parser::parse(bool conditional_too) {
  nesting open(*this);
  auto at = reader_.place();
  auto what = parse_or();
  while (conditional_too && reader_.take_name("if")) {
    auto condition = parse_or();
    auto otherwise = reader_.take_name("else") ? parse() : nullptr;
    what = make(at, conditional{condition, what, otherwise});
  }
  return what;
}

const expression* expression_parser::parse_or() {
  auto at = reader_.place();
  auto left = parse_and();
  while (reader_.take_name("or")) {
    auto right = parse_and();
    left = make(at, logical{false, left, right});
  }
  return left;
}

const expression* expression_parser::parse_and() {
  auto at = reader_.place();
  auto left = parse_not();
  while (reader_.take_name("and")) {
    auto right = parse_not();
    left = make(at, logical{true, left, right});
  }
  return left;
}

const expression* expression_parser::parse_not() {
  auto at = reader_.place();
  if (!reader_.take_name("not"))
    return parse_comparison();
  nesting open(*this);
  return make(at, unary{unary_sign::inverse, parse_not()});
}

bool expression_parser::take_comparison(comparison_sign& sign) {
  static constexpr std::array<std::pair<std::string_view, comparison_sign>, 6> signs = {{
    {"==", comparison_sign::equal},
    {"!=", comparison_sign::unequal},
    {"<", comparison_sign::less},
    {"<=", comparison_sign::at_most},
    {">", comparison_sign::more},
    {">=", comparison_sign::at_least},
  }};
  for (auto [spelling, meaning] : signs)
    if (reader_.take_sign(spelling)) {
      sign = meaning;
      return true;
    }
  if (reader_.take_name("in")) {
    sign = comparison_sign::in;
    return true;
  }
  if (reader_.is_name("not") && reader_.next().kind == token_kind::name
      && reader_.next().text == "in") {
    reader_.take();
    reader_.take();
    sign = comparison_sign::not_in;
    return true;
  }
  return false;
}

const expression* expression_parser::parse_comparison() {
  auto at = reader_.place();
  auto first = parse_sum();
  comparison all{first, {}};
  comparison_sign sign = comparison_sign::equal;
  while (take_comparison(sign))
    all.rest.emplace_back(sign, parse_sum());
  return all.rest.empty() ? first : make(at, std::move(all));
}

const expression* expression_parser::parse_sum() {
  auto left = parse_concatenation();
  while (reader_.is_sign("+") || reader_.is_sign("-")) {
    auto sign = reader_.take();
    auto right = parse_concatenation();
    left = make(sign.at,
                binary{sign.text == "+" ? binary_sign::add : binary_sign::subtract, left, right});
  }
  return left;
}

const expression* expression_parser::parse_concatenation() {
  auto at = reader_.place();
  auto first = parse_product();
  concatenation all{{first}};
  while (reader_.take_sign("~"))
    all.parts.push_back(parse_product());
  return all.parts.size() == 1 ? first : make(at, std::move(all));
}

const expression* expression_parser::parse_product() {
  auto left = parse_power();
  while (reader_.is_sign("*") || reader_.is_sign("/") || reader_.is_sign("//")
         || reader_.is_sign("%")) {
    auto sign = reader_.take();
    auto right = parse_power();
    auto meaning = sign.text == "*"    ? binary_sign::multiply
                   : sign.text == "/"  ? binary_sign::divide
                   : sign.text == "//" ? binary_sign::floor
                                       : binary_sign::modulo;
    left = make(sign.at, binary{meaning, left, right});
  }
  return left;
}

const expression* expression_parser::parse_power() {
  auto left = parse_unary(true);
  while (reader_.is_sign("**")) {
    auto sign = reader_.take();
    auto right = parse_unary(true);
    left = make(sign.at, binary{binary_sign::power, left, right});
  }
  return left;
}

const expression* expression_parser::parse_unary(bool with_filters) {
  auto at = reader_.place();
  const expression* what = nullptr;
  if (reader_.is_sign("-") || reader_.is_sign("+")) {
    nesting open(*this);
    auto sign = reader_.take().text == "-" ? unary_sign::minus : unary_sign::plus;
    what = make(at, unary{sign, parse_unary(false)});
  } else {
    what = parse_primary();
  }
  what = parse_postfix(what);
  return with_filters ? parse_filters(what, true) : what;
}

const expression* expression_parser::parse_number() {
  auto taken = reader_.take();
  const char *start = taken.text.data(), *end = start + taken.text.size();
  if (taken.kind == token_kind::real) {
    double number = 0;
    std::from_chars(start, end, number);
    return make(taken.at, literal{number});
  }
  std::int64_t number = 0;
  if (std::from_chars(start, end, number).ec != std::errc())
    reader_.fail(taken.at,
                 fmt::format("{} has more than the 64 bits of whole numbers", taken.text),
                 errc::unsupported);
  return make(taken.at, literal{number});
}

const expression* expression_parser::parse_primary() {
  auto at = reader_.place();
  if (reader_.is(token_kind::integer) || reader_.is(token_kind::real))
    return parse_number();
  if (reader_.is(token_kind::string)) {
    std::string text;
    while (reader_.is(token_kind::string)) // neighbours are one text
      text += reader_.take().text;
    return make(at, literal{std::move(text)});
  }
  if (reader_.is(token_kind::name)) {
    auto name = reader_.take().text;
    if (name == "true" || name == "True")
      return make(at, literal{true});
    if (name == "false" || name == "False")
      return make(at, literal{false});
    if (name == "none" || name == "None")
      return make(at, literal{value::none()});
    return make(at, variable{std::move(name)});
  }
  if (reader_.take_sign("(")) {
    auto what = reader_.is_sign(")") ? make(at, list_of{}) : parse_tuple();
    reader_.expect_sign(")");
    return what;
  }
  if (reader_.take_sign("["))
    return parse_list(at);
  if (reader_.take_sign("{"))
    return parse_dictionary(at);
  reader_.unexpected("an expression");
  return make(at, literal{});
}

const expression* expression_parser::parse_list(position at) {
  list_of items;
  while (!reader_.at_end() && !reader_.is_sign("]")) {
    items.items.push_back(parse());
    if (!reader_.take_sign(","))
      break;
  }
  reader_.expect_sign("]");
  return make(at, std::move(items));
}

const expression* expression_parser::parse_dictionary(position at) {
  dictionary_of entries;
  while (!reader_.at_end() && !reader_.is_sign("}")) {
    auto key = parse();
    reader_.expect_sign(":");
    auto content = parse();
    entries.entries.emplace_back(key, content);
    if (!reader_.take_sign(","))
      break;
  }
  reader_.expect_sign("}");
  return make(at, std::move(entries));
}

const expression* expression_parser::parse_postfix(const expression* of) {
  while (true) {
    auto at = reader_.place();
    if (reader_.take_sign(".")) {
      if (reader_.is(token_kind::integer)) // list.0
        of = make(at, element{of, parse_number()});
      else
        of = make(at, attribute{of, reader_.expect_any_name("the name of an attribute")});
    } else if (reader_.take_sign("[")) {
      of = parse_subscript(of, at);
    } else if (reader_.is_sign("(")) {
      of = make(at, call{of, parse_arguments()});
    } else {
      return of;
    }
  }
}

const expression* expression_parser::parse_subscript(const expression* of, position at) {
  const expression* parts[3] = {};
  std::size_t part = 0;
  while (!reader_.at_end() && !reader_.is_sign("]")) {
    if (!reader_.is_sign(":"))
      parts[part] = parse_tuple();
    if (!reader_.take_sign(":"))
      break;
    if (++part == 3) {
      reader_.unexpected("']'");
      break;
    }
    if (part == 1 && reader_.is_sign("]"))
      break;
  }
  reader_.expect_sign("]");
  if (part > 0)
    return make(at, slice{of, parts[0], parts[1], parts[2]});
  if (parts[0] == nullptr)
    reader_.fail(at, "the brackets are empty; an index belongs here");
  return make(at, element{of, parts[0]});
}

arguments expression_parser::parse_arguments() {
  arguments all;
  reader_.expect_sign("(");
  while (!reader_.at_end() && !reader_.is_sign(")")) {
    if (reader_.is_sign("*") || reader_.is_sign("**"))
      reader_.fail(reader_.place(), "'*' before an argument is not supported", errc::unsupported);
    bool named = reader_.is(token_kind::name) && reader_.next().kind == token_kind::sign
                 && reader_.next().text == "=";
    if (named) {
      auto name = reader_.take().text;
      reader_.take();
      auto content = parse();
      all.named.emplace_back(std::move(name), content);
    } else if (!all.named.empty()) {
      reader_.unexpected("an argument with a name");
    } else {
      all.positional.push_back(parse());
    }
    if (!reader_.take_sign(","))
      break;
  }
  reader_.expect_sign(")");
  return all;
}

const expression* expression_parser::parse_filters(const expression* of, bool first_has_bar) {
  while (true) {
    auto at = reader_.place();
    if (!first_has_bar || reader_.take_sign("|")) {
      first_has_bar = true;
      auto name = reader_.expect_any_name("the name of a filter");
      if (!name.empty() && !is_filter(name))
        reader_.fail(at,
                     fmt::format("no filter '{}'; there are: {}", name, filter_names()),
                     errc::unsupported);
      arguments with;
      if (reader_.is_sign("("))
        with = parse_arguments();
      of = make(at, filter{of, std::move(name), std::move(with)});
    } else if (of != nullptr && reader_.is_name("is")) {
      of = parse_test(of);
    } else if (of != nullptr && reader_.is_sign("(")) {
      of = make(at, call{of, parse_arguments()});
    } else {
      return of;
    }
  }
}

/// Whether an argument without brackets follows the name of a test: "is divisibleby 3".
bool expression_parser::starts_test_argument() const {
  if (reader_.is(token_kind::name)) {
    static constexpr std::array<std::string_view, 7> others = {
      "else", "or", "and", "if", "is", "in", "not"};
    for (auto other : others)
      if (reader_.now().text == other)
        return false;
    return true;
  }
  return reader_.is(token_kind::string) || reader_.is(token_kind::integer)
         || reader_.is(token_kind::real) || reader_.is_sign("[") || reader_.is_sign("{");
}

const expression* expression_parser::parse_test(const expression* of) {
  auto at = reader_.take().at;
  bool negated = reader_.take_name("not");
  auto name = reader_.expect_any_name("the name of a test");
  if (!name.empty() && !is_test(name))
    reader_.fail(
      at, fmt::format("no test '{}'; there are: {}", name, test_names()), errc::unsupported);
  arguments with;
  if (reader_.is_sign("("))
    with = parse_arguments();
  else if (starts_test_argument())
    with.positional.push_back(parse_postfix(parse_primary()));
  return make(at, test{of, std::move(name), std::move(with), negated});
}

} // namespace troupe::compute::chat
