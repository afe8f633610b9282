#include "compute/chat/value.hpp"

#include <algorithm>

namespace troupe::compute::chat {

value::value(items content) {
  std::size_t deepest = 0;
  for (const auto& item : content)
    deepest = std::max(deepest, item.depth());
  data_ = std::make_shared<const list>(list{std::move(content), deepest + 1});
}

std::size_t value::depth() const noexcept {
  if (auto held = shared<list>())
    return held->depth;
  auto entries = as_dictionary();
  return entries != nullptr ? entries->depth() : 0;
}

void dictionary::set(std::string key, value content) {
  depth_ = std::max(depth_, content.depth() + 1);
  auto [place, fresh] = places_.try_emplace(std::move(key), entries_.size());
  if (fresh)
    entries_.emplace_back(place->first, std::move(content));
  else
    entries_[place->second].second = std::move(content);
}

const value* dictionary::find(std::string_view key) const {
  auto place = places_.find(key);
  return place == places_.end() ? nullptr : &entries_[place->second].second;
}

std::string_view type_name(const value& what) noexcept {
  if (what.is_undefined())
    return "undefined";
  if (what.is_none())
    return "none";
  if (what.as_boolean() != nullptr)
    return "bool";
  if (what.as_integer() != nullptr)
    return "int";
  if (what.as_real() != nullptr)
    return "float";
  if (what.as_text() != nullptr)
    return "str";
  if (what.as_list() != nullptr)
    return "list";
  if (what.as_dictionary() != nullptr)
    return "dict";
  return "object";
}

bool is_true(const value& what) noexcept {
  if (auto truth = what.as_boolean())
    return *truth;
  if (auto number = what.as_integer())
    return *number != 0;
  if (auto number = what.as_real())
    return *number != 0;
  if (auto text = what.as_text())
    return !text->empty();
  if (auto list = what.as_list())
    return !list->empty();
  if (auto entries = what.as_dictionary())
    return entries->size() > 0;
  return what.as_object() != nullptr;
}

bool to_integer(const value& what, std::int64_t& number) noexcept {
  if (auto truth = what.as_boolean())
    number = *truth ? 1 : 0;
  else if (auto whole = what.as_integer())
    number = *whole;
  else
    return false;
  return true;
}

bool to_number(const value& what, double& number) noexcept {
  std::int64_t whole = 0;
  if (to_integer(what, whole))
    number = static_cast<double>(whole);
  else if (auto real = what.as_real())
    number = *real;
  else
    return false;
  return true;
}

namespace {

bool take(std::size_t& work, std::size_t cost) noexcept {
  bool enough = work > cost;
  work = enough ? work - cost : 0;
  return enough;
}

bool equal_texts(const std::string& left, const std::string& right, std::size_t& work) noexcept {
  return left.size() == right.size() && take(work, left.size() / 16) && left == right;
}

bool equal_lists(const value::items& left, const value::items& right, std::size_t& work) noexcept {
  return left.size() == right.size()
         && std::equal(
           left.begin(), left.end(), right.begin(), [&](const value& one, const value& other) {
             return equal(one, other, work);
           });
}

bool equal_entries(const dictionary& left, const dictionary& right, std::size_t& work) noexcept {
  return left.size() == right.size()
         && std::all_of(left.entries().begin(), left.entries().end(), [&](const auto& entry) {
              auto other = right.find(entry.first);
              return other != nullptr && equal(entry.second, *other, work);
            });
}

} // namespace

bool equal(const value& left, const value& right, std::size_t& work) noexcept {
  if (!take(work, 1))
    return false;
  std::int64_t left_whole = 0, right_whole = 0;
  if (to_integer(left, left_whole) && to_integer(right, right_whole))
    return left_whole == right_whole;
  double left_number = 0, right_number = 0;
  if (to_number(left, left_number) && to_number(right, right_number))
    return left_number == right_number;
  if (auto text = left.as_text(), other = right.as_text(); text != nullptr && other != nullptr)
    return equal_texts(*text, *other, work);
  if (auto list = left.as_list(), other = right.as_list(); list != nullptr && other != nullptr)
    return equal_lists(*list, *other, work);
  if (auto one = left.as_dictionary(), other = right.as_dictionary();
      one != nullptr && other != nullptr)
    return equal_entries(*one, *other, work);
  if (left.as_object() != nullptr)
    return left.as_object() == right.as_object();
  return (left.is_none() && right.is_none()) || (left.is_undefined() && right.is_undefined());
}

} // namespace troupe::compute::chat
