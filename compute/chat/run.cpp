#include "compute/chat/run.hpp"

#include "compute/chat/unicode.hpp"
#include "compute/chat/value_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::compute::chat {

value run::fail(position at, std::string_view sentence, errc code) {
  if (!failure_)
    failure_ = error_at(at, sentence, code);
  return {};
}

bool run::spend(position at, std::size_t cost) {
  if (work_ <= cost) {
    work_ = 0;
    fail(at,
         fmt::format("the template works too long: more than {} bytes and steps", limits_.work),
         errc::overloaded);
  } else {
    work_ -= cost;
  }
  return !failed();
}

value run::text(position at, std::string made) {
  if (made.size() > limits_.text_bytes)
    return fail(at,
                fmt::format("the template makes a text of more than {} bytes", limits_.text_bytes),
                errc::overloaded);
  return spend(at, made.size()) ? value(std::move(made)) : value();
}

value run::list(position at, value::items made) {
  if (!spend(at, made.size() * node_cost))
    return {};
  value all(std::move(made));
  return all.depth() <= most_nested
           ? all
           : fail(at, fmt::format("a list is nested more than {} deep", most_nested));
}

value run::entries(position at, dictionary made) {
  if (!spend(at, made.size() * node_cost * 4))
    return {};
  value all(std::move(made));
  return all.depth() <= most_nested
           ? all
           : fail(at, fmt::format("a dictionary is nested more than {} deep", most_nested));
}

std::string run::printed(position at, const value& what) {
  auto made = to_text(what, std::min(work_, limits_.text_bytes));
  if (made.size() > limits_.text_bytes)
    text(at, made);
  else
    spend(at, made.size());
  return failed() ? std::string() : made;
}

value run::fail_undefined(position at, const value& what) {
  auto missing = what.as_missing();
  if (missing != nullptr && missing->name != nullptr)
    return fail(at, fmt::format("'{}' is undefined", *missing->name));
  return fail(at, "a value that is needed here is undefined");
}

const std::string* run::expect_text(position at, const value& what, std::string_view whose) {
  if (auto text = what.as_text())
    return text;
  fail(at, fmt::format("{} is of type {}, but must be a text", whose, type_name(what)));
  return nullptr;
}

bool run::expect_integer(position at,
                         const value& what,
                         std::string_view whose,
                         std::int64_t& out) {
  if (to_integer(what, out))
    return true;
  fail(at, fmt::format("{} is of type {}, but must be a whole number", whose, type_name(what)));
  return false;
}

value::items run::items_of(position at, const value& what) {
  value::items all;
  if (auto list = what.as_list()) {
    if (spend(at, list->size()))
      all = *list;
  } else if (auto entries = what.as_dictionary()) {
    if (spend(at, entries->size() * node_cost))
      for (const auto& [key, content] : entries->entries())
        all.emplace_back(key);
  } else if (auto text = what.as_text()) {
    if (spend(at, text->size() * node_cost))
      for (auto character : characters_of(*text))
        all.emplace_back(character);
  } else if (!what.is_undefined()) {
    fail(at, fmt::format("a value of type {} has no items", type_name(what)));
  }
  return all;
}

parameters::parameters(run& running,
                       position at,
                       std::string_view function,
                       const call_values& given,
                       std::initializer_list<std::string_view> names)
  : run_(running), at_(at), function_(function), names_(names), values_(names.size()) {
  if (given.positional.size() > names_.size()) {
    run_.fail(at_,
              fmt::format("{} takes at most {} arguments, not {}",
                          function_,
                          names_.size(),
                          given.positional.size()));
    return;
  }
  std::copy(given.positional.begin(), given.positional.end(), values_.begin());
  for (const auto& [name, content] : given.named) {
    auto place = std::find(names_.begin(), names_.end(), name);
    if (place == names_.end())
      run_.fail(at_, fmt::format("{} has no argument '{}'", function_, name));
    else if (auto& slot = values_[static_cast<std::size_t>(place - names_.begin())]; slot)
      run_.fail(at_, fmt::format("{} has its argument '{}' twice", function_, name));
    else
      slot = content;
  }
}

std::string parameters::name_of(std::size_t which) const {
  return fmt::format("'{}' of {}", names_[which], function_);
}

value parameters::required(std::size_t which) {
  if (!has(which))
    return run_.fail(at_, fmt::format("{} is missing", name_of(which)));
  return at(which);
}

std::string parameters::text(std::size_t which, std::string_view fallback) {
  if (!has(which))
    return std::string(fallback);
  auto content = at(which);
  auto text = run_.expect_text(at_, content, name_of(which));
  return text != nullptr ? *text : std::string();
}

std::optional<std::string> parameters::optional_text(std::size_t which) {
  if (!has(which) || at(which).is_none())
    return std::nullopt;
  return text(which, "");
}

std::int64_t parameters::integer(std::size_t which, std::int64_t fallback) {
  std::int64_t number = fallback;
  if (has(which))
    run_.expect_integer(at_, at(which), name_of(which), number);
  return number;
}

bool parameters::flag(std::size_t which, bool fallback) const {
  return has(which) ? is_true(at(which)) : fallback;
}

} // namespace troupe::compute::chat
