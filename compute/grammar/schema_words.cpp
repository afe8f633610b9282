#include "compute/grammar/schema_words.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace troupe::compute {

namespace {

constexpr std::array<std::string_view, 13> annotations = {"title",
                                                          "description",
                                                          "default",
                                                          "examples",
                                                          "$schema",
                                                          "$id",
                                                          "$comment",
                                                          "deprecated",
                                                          "readOnly",
                                                          "writeOnly",
                                                          "$defs",
                                                          "definitions",
                                                          "$anchor"};

constexpr std::array<std::string_view, 17> keywords = {"type",
                                                       "enum",
                                                       "const",
                                                       "anyOf",
                                                       "oneOf",
                                                       "allOf",
                                                       "$ref",
                                                       "properties",
                                                       "required",
                                                       "additionalProperties",
                                                       "items",
                                                       "prefixItems",
                                                       "minItems",
                                                       "maxItems",
                                                       "minLength",
                                                       "maxLength",
                                                       "uniqueItems"};

constexpr std::array<std::string_view, 7> types = {
  "null", "boolean", "object", "array", "string", "number", "integer"};

template <std::size_t Count>
bool holds(const std::array<std::string_view, Count>& all, std::string_view one) noexcept {
  return std::find(all.begin(), all.end(), one) != all.end();
}

template <std::size_t Count>
std::string listed(const std::array<std::string_view, Count>& all) {
  std::string made;
  for (auto one : all)
    made.append(made.empty() ? "" : ", ").append(one);
  return made;
}

/// The next part of a pointer, which goes from `pointer`.
std::string take_part(std::string_view& pointer) {
  auto part = std::string(pointer.substr(0, pointer.find('/')));
  pointer.remove_prefix(part.size());
  for (auto [escape, meant] : {std::pair{"~1", "/"}, std::pair{"~0", "~"}})
    for (std::size_t at = 0; (at = part.find(escape, at)) != part.npos; ++at)
      part.replace(at, 2, meant);
  return part;
}

const chat::value* item_at(const chat::value::items& list, const std::string& part) {
  constexpr std::size_t most_digits = 6;
  bool digits = !part.empty() && part.size() <= most_digits
                && part.find_first_not_of("0123456789") == std::string::npos;
  auto place = digits ? static_cast<std::size_t>(std::stoul(part)) : list.size();
  return place < list.size() ? &list[place] : nullptr;
}

} // namespace

bool is_annotation(std::string_view key) noexcept {
  return holds(annotations, key);
}

bool is_keyword(std::string_view key) noexcept {
  return holds(keywords, key);
}

bool is_type(std::string_view name) noexcept {
  return holds(types, name);
}

std::string keyword_list() {
  return listed(keywords);
}

std::string type_list() {
  return listed(types);
}

bool is_of_type(const chat::value& what, std::string_view type) noexcept {
  if (type == "null")
    return what.is_none();
  if (type == "boolean")
    return what.as_boolean() != nullptr;
  if (type == "object")
    return what.as_dictionary() != nullptr;
  if (type == "array")
    return what.as_list() != nullptr;
  if (type == "string")
    return what.as_text() != nullptr;
  return what.as_integer() != nullptr || (type == "number" && what.as_real() != nullptr);
}

const chat::value* schema_at(const chat::value& root, std::string_view reference) {
  const chat::value* now = &root;
  reference.remove_prefix(1);
  while (now != nullptr && !reference.empty()) {
    if (reference.front() != '/')
      return nullptr;
    reference.remove_prefix(1);
    auto part = take_part(reference);
    if (auto entries = now->as_dictionary())
      now = entries->find(part);
    else if (auto list = now->as_list())
      now = item_at(*list, part);
    else
      now = nullptr;
  }
  return now;
}

} // namespace troupe::compute
