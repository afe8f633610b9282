#include "compute/chat/operators.hpp"

#include "compute/chat/unicode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::compute::chat {

namespace {

std::string_view spelled(binary_sign sign) noexcept {
  switch (sign) {
  case binary_sign::add: return "+";
  case binary_sign::subtract: return "-";
  case binary_sign::multiply: return "*";
  case binary_sign::divide: return "/";
  case binary_sign::floor: return "//";
  case binary_sign::modulo: return "%";
  case binary_sign::power: return "**";
  }
  return "?";
}

value too_large(run& running, position at) {
  return running.fail(at, "the result has more than the 64 bits of whole numbers");
}

std::int64_t floor_quotient(std::int64_t left, std::int64_t right) noexcept {
  auto quotient = left / right;
  return left % right != 0 && (left < 0) != (right < 0) ? quotient - 1 : quotient;
}

value whole_power(run& running, position at, std::int64_t base, std::int64_t exponent) {
  if (exponent < 0)
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  std::int64_t made = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(made, base, &made))
      return too_large(running, at);
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base))
      return too_large(running, at);
  }
  return made;
}

value apply_whole(
  run& running, position at, binary_sign sign, std::int64_t left, std::int64_t right) {
  std::int64_t made = 0;
  bool divides = sign == binary_sign::floor || sign == binary_sign::modulo;
  if (divides && right == 0)
    return running.fail(at, "division by zero");
  if (divides && right == -1) // the one quotient that does not fit is that of the least number
    return sign == binary_sign::modulo                        ? value(0)
           : left == std::numeric_limits<std::int64_t>::min() ? too_large(running, at)
                                                              : value(-left);
  switch (sign) {
  case binary_sign::add:
    return __builtin_add_overflow(left, right, &made) ? too_large(running, at) : value(made);
  case binary_sign::subtract:
    return __builtin_sub_overflow(left, right, &made) ? too_large(running, at) : value(made);
  case binary_sign::multiply:
    return __builtin_mul_overflow(left, right, &made) ? too_large(running, at) : value(made);
  case binary_sign::floor: return floor_quotient(left, right);
  case binary_sign::modulo: return left - floor_quotient(left, right) * right;
  case binary_sign::power: return whole_power(running, at, left, right);
  case binary_sign::divide: break;
  }
  if (right == 0)
    return running.fail(at, "division by zero");
  return static_cast<double>(left) / static_cast<double>(right);
}

value apply_real(run& running, position at, binary_sign sign, double left, double right) {
  bool divides =
    sign == binary_sign::divide || sign == binary_sign::floor || sign == binary_sign::modulo;
  if (divides && right == 0)
    return running.fail(at, "division by zero");
  switch (sign) {
  case binary_sign::add: return left + right;
  case binary_sign::subtract: return left - right;
  case binary_sign::multiply: return left * right;
  case binary_sign::divide: return left / right;
  case binary_sign::floor: return std::floor(left / right);
  case binary_sign::power: return std::pow(left, right);
  case binary_sign::modulo: break;
  }
  double rest = std::fmod(left, right);
  return rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest;
}

value repeated(run& running, position at, const value& what, std::int64_t times) {
  auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  if (auto text = what.as_text()) {
    if (count > 0 && text->size() > running.limits().text_bytes / count)
      return running.text(at, std::string(running.limits().text_bytes + 1, ' ')); // says so
    std::string made;
    for (; count > 0 && !text->empty(); --count)
      made += *text;
    return running.text(at, std::move(made));
  }
  const auto& list = *what.as_list();
  value::items made;
  for (; count > 0 && !list.empty() && running.spend(at, list.size() * run::node_cost); --count)
    made.insert(made.end(), list.begin(), list.end());
  return running.list(at, std::move(made));
}

/// The places that a slice takes, as Python's slice.indices().
std::vector<std::size_t> places_of(std::size_t size,
                                   std::optional<std::int64_t> start,
                                   std::optional<std::int64_t> stop,
                                   std::int64_t step) {
  auto length = static_cast<std::int64_t>(size);
  std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? length : length - 1;
  auto bounded = [&](std::int64_t place) {
    return std::clamp(place < 0 ? place + length : place, low, high);
  };
  std::int64_t from = start ? bounded(*start) : step > 0 ? low : high;
  std::int64_t to = stop ? bounded(*stop) : step > 0 ? high : low;
  std::vector<std::size_t> places;
  while (step > 0 ? from < to : from > to) {
    places.push_back(static_cast<std::size_t>(from));
    if (step > length || step < -length)
      break; // the next one is outside
    from += step;
  }
  return places;
}

} // namespace

value apply(run& running, position at, unary_sign sign, const value& operand) {
  if (sign == unary_sign::inverse)
    return !is_true(operand);
  std::int64_t whole = 0;
  if (to_integer(operand, whole)) {
    if (sign == unary_sign::plus)
      return whole;
    return whole == std::numeric_limits<std::int64_t>::min() ? too_large(running, at)
                                                             : value(-whole);
  }
  if (auto real = operand.as_real())
    return sign == unary_sign::plus ? *real : -*real;
  if (operand.is_undefined())
    return running.fail_undefined(at, operand);
  return running.fail(at, fmt::format("a value of type {} has no sign", type_name(operand)));
}

value apply(run& running, position at, binary_sign sign, const value& left, const value& right) {
  if (running.failed())
    return {};
  std::int64_t left_whole = 0, right_whole = 0;
  bool left_is_whole = to_integer(left, left_whole),
       right_is_whole = to_integer(right, right_whole);
  if (left_is_whole && right_is_whole)
    return apply_whole(running, at, sign, left_whole, right_whole);
  double left_real = 0, right_real = 0;
  if (to_number(left, left_real) && to_number(right, right_real))
    return apply_real(running, at, sign, left_real, right_real);
  auto left_text = left.as_text(), right_text = right.as_text();
  auto left_list = left.as_list(), right_list = right.as_list();
  if (sign == binary_sign::add && left_text != nullptr && right_text != nullptr)
    return running.text(at, *left_text + *right_text);
  if (sign == binary_sign::add && left_list != nullptr && right_list != nullptr) {
    auto made = *left_list;
    made.insert(made.end(), right_list->begin(), right_list->end());
    return running.list(at, std::move(made));
  }
  if (sign == binary_sign::multiply && (left_text != nullptr || left_list != nullptr)
      && right_is_whole)
    return repeated(running, at, left, right_whole);
  if (sign == binary_sign::multiply && (right_text != nullptr || right_list != nullptr)
      && left_is_whole)
    return repeated(running, at, right, left_whole);
  if (left.is_undefined() || right.is_undefined())
    return running.fail_undefined(at, left.is_undefined() ? left : right);
  if (sign == binary_sign::modulo && left_text != nullptr)
    return running.fail(at, "'%' with a text is not supported; '~' joins", errc::unsupported);
  return running.fail(at,
                      fmt::format("'{}' does not go with values of type {} and {}",
                                  spelled(sign),
                                  type_name(left),
                                  type_name(right)));
}

int compare(run& running, position at, const value& left, const value& right) {
  double left_number = 0, right_number = 0;
  std::int64_t left_whole = 0, right_whole = 0;
  if (running.failed())
    return 0;
  if (to_integer(left, left_whole) && to_integer(right, right_whole))
    return left_whole < right_whole ? -1 : left_whole > right_whole;
  if (to_number(left, left_number) && to_number(right, right_number))
    return left_number < right_number ? -1 : left_number > right_number;
  if (auto one = left.as_text(), other = right.as_text(); one != nullptr && other != nullptr) {
    running.spend(at, std::min(one->size(), other->size()) / 16);
    return one->compare(*other); // the order of bytes is that of characters
  }
  if (auto one = left.as_list(), other = right.as_list(); one != nullptr && other != nullptr) {
    for (std::size_t item = 0; item < std::min(one->size(), other->size()); ++item) {
      if (!running.spend(at, run::node_cost))
        return 0;
      if (!equal((*one)[item], (*other)[item], running.work()))
        return compare(running, at, (*one)[item], (*other)[item]);
    }
    return one->size() < other->size() ? -1 : one->size() > other->size();
  }
  if (left.is_undefined() || right.is_undefined())
    running.fail_undefined(at, left.is_undefined() ? left : right);
  else
    running.fail(
      at, fmt::format("values of type {} and {} have no order", type_name(left), type_name(right)));
  return 0;
}

bool contains(run& running, position at, const value& whole, const value& part) {
  if (auto text = whole.as_text()) {
    auto sought = running.expect_text(at, part, "what is sought 'in' a text");
    return sought != nullptr && running.spend(at, text->size() / 4)
           && text->find(*sought) != std::string::npos;
  }
  if (auto entries = whole.as_dictionary())
    return part.as_text() != nullptr && entries->find(*part.as_text()) != nullptr;
  if (auto list = whole.as_list())
    return std::any_of(list->begin(), list->end(), [&](const value& item) {
      return equal(item, part, running.work());
    });
  if (!whole.is_undefined())
    running.fail(at, fmt::format("a value of type {} has nothing 'in' it", type_name(whole)));
  return false;
}

bool apply(run& running, position at, comparison_sign sign, const value& left, const value& right) {
  switch (sign) {
  case comparison_sign::equal: return equal(left, right, running.work());
  case comparison_sign::unequal: return !equal(left, right, running.work());
  case comparison_sign::less: return compare(running, at, left, right) < 0;
  case comparison_sign::at_most: return compare(running, at, left, right) <= 0;
  case comparison_sign::more: return compare(running, at, left, right) > 0;
  case comparison_sign::at_least: return compare(running, at, left, right) >= 0;
  case comparison_sign::in: return contains(running, at, right, left);
  case comparison_sign::not_in: return !contains(running, at, right, left);
  }
  return false;
}

value element_of(
  run& running, position at, const value& of, const value& key, const std::string* name) {
  if (of.is_undefined())
    return running.fail_undefined(at, of);
  value nothing(value::missing{name});
  if (auto text_key = key.as_text()) {
    if (auto entries = of.as_dictionary()) {
      auto found = entries->find(*text_key);
      return found != nullptr ? *found : nothing;
    }
    if (auto held = of.as_object()) {
      auto found = held->attribute(*text_key);
      return found.is_undefined() ? nothing : found;
    }
    return nothing;
  }
  std::int64_t place = 0;
  if (!to_integer(key, place))
    return nothing;
  auto within = [&](std::size_t size) {
    place += place < 0 ? static_cast<std::int64_t>(size) : 0;
    return place >= 0 && place < static_cast<std::int64_t>(size);
  };
  if (auto list = of.as_list())
    return within(list->size()) ? (*list)[static_cast<std::size_t>(place)] : nothing;
  if (auto text = of.as_text()) {
    running.spend(at, text->size());
    auto characters = characters_of(*text);
    if (within(characters.size()))
      return running.text(at, std::string(characters[static_cast<std::size_t>(place)]));
  }
  return nothing;
}

value slice_of(run& running,
               position at,
               const value& of,
               const value& start,
               const value& stop,
               const value& step) {
  auto read = [&](const value& part, std::string_view whose) -> std::optional<std::int64_t> {
    std::int64_t number = 0;
    if (part.is_undefined() || part.is_none() || !running.expect_integer(at, part, whose, number))
      return std::nullopt;
    // Far outside is as good as at the end, and leaves room to count.
    return std::clamp<std::int64_t>(number, -(std::int64_t{1} << 40), std::int64_t{1} << 40);
  };
  auto from = read(start, "the start of a slice"), to = read(stop, "the end of a slice");
  auto by = read(step, "the step of a slice").value_or(1);
  if (of.is_undefined())
    return running.fail_undefined(at, of);
  if (by == 0)
    return running.fail(at, "the step of a slice is 0");
  if (auto list = of.as_list()) {
    value::items made;
    if (running.spend(at, list->size()))
      for (auto place : places_of(list->size(), from, to, by))
        made.push_back((*list)[place]);
    return running.list(at, std::move(made));
  }
  if (auto text = of.as_text()) {
    std::string made;
    if (running.spend(at, text->size() * 2)) {
      auto characters = characters_of(*text);
      for (auto place : places_of(characters.size(), from, to, by))
        made += characters[place];
    }
    return running.text(at, std::move(made));
  }
  return running.fail(at, fmt::format("a value of type {} has no slices", type_name(of)));
}

} // namespace troupe::compute::chat
