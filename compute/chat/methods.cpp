#include "compute/chat/methods.hpp"

#include "compute/chat/text_methods.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace troupe::compute::chat {

namespace {

using method = value (*)(run&, position, const value&, const call_values&);

struct named_method {
  std::string_view name;
  method body;
};

value pair_of(run& running, position at, const dictionary::entry& entry) {
  return running.list(at, {value(entry.first), entry.second});
}

value get(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "get", with, {"key", "default"});
  auto key = given.required(0);
  auto found = key.as_text() != nullptr ? of.as_dictionary()->find(*key.as_text()) : nullptr;
  return found != nullptr ? *found : given.has(1) ? given.at(1) : value::none();
}

value items(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "items", with, {});
  value::items made;
  for (const auto& entry : of.as_dictionary()->entries())
    if (!running.failed())
      made.push_back(pair_of(running, at, entry));
  return running.list(at, std::move(made));
}

value keys(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "keys", with, {});
  return running.list(at, running.items_of(at, of));
}

value values(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "values", with, {});
  value::items made;
  for (const auto& entry : of.as_dictionary()->entries())
    made.push_back(entry.second);
  return running.list(at, std::move(made));
}

value copy(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "copy", with, {});
  return of; // nothing can change it
}

value count(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "count", with, {"value"});
  auto sought = given.required(0);
  std::size_t found = 0;
  for (const auto& item : *of.as_list())
    found += equal(item, sought, running.work());
  return found;
}

value index(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "index", with, {"value"});
  auto sought = given.required(0);
  const auto& list = *of.as_list();
  for (std::size_t place = 0; place < list.size(); ++place)
    if (equal(list[place], sought, running.work()))
      return place;
  return running.fail(at, "index: the value is not in the list");
}

constexpr std::array<named_method, 5> dictionary_methods = {
  {{"get", get}, {"items", items}, {"keys", keys}, {"values", values}, {"copy", copy}}};

constexpr std::array<named_method, 3> list_methods = {
  {{"count", count}, {"index", index}, {"copy", copy}}};

template <std::size_t Count>
method find(const std::array<named_method, Count>& all, std::string_view name) noexcept {
  for (const auto& one : all)
    if (one.name == name)
      return one.body;
  return nullptr;
}

method find(const value& of, std::string_view name) noexcept {
  if (of.as_dictionary() != nullptr)
    return find(dictionary_methods, name);
  return of.as_list() != nullptr ? find(list_methods, name) : nullptr;
}

} // namespace

bool has_method(const value& of, std::string_view name) noexcept {
  return of.as_text() != nullptr ? has_text_method(name) : find(of, name) != nullptr;
}

value call_method(
  run& running, position at, const value& of, std::string_view name, const call_values& with) {
  if (running.failed())
    return {};
  if (auto text = of.as_text(); text != nullptr && has_text_method(name))
    return running.spend(at, text->size()) ? call_text_method(running, at, *text, name, with)
                                           : value();
  if (auto body = find(of, name))
    return body(running, at, of, with);
  static constexpr std::array<std::string_view, 12> changing = {"append",
                                                                "extend",
                                                                "insert",
                                                                "pop",
                                                                "remove",
                                                                "clear",
                                                                "update",
                                                                "setdefault",
                                                                "popitem",
                                                                "sort",
                                                                "reverse",
                                                                "add"};
  if (std::find(changing.begin(), changing.end(), name) != changing.end())
    return running.fail(at,
                        fmt::format("'{}' would change a value, which templates may not", name));
  return running.fail(
    at,
    fmt::format("values of type {} have no method '{}' here", type_name(of), name),
    errc::unsupported);
}

} // namespace troupe::compute::chat
