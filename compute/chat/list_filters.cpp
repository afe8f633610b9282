#include "compute/chat/list_filters.hpp"

#include "compute/chat/filters.hpp"
#include "compute/chat/known_names.hpp"
#include "compute/chat/operators.hpp"
#include "compute/chat/unicode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace troupe::compute::chat {

namespace {

/// What "a.b.0" names in an item; the item itself without a path.
value by_path(run& running, position at, value of, std::string_view path) {
  while (!path.empty()) {
    auto dot = std::min(path.find('.'), path.size());
    auto part = path.substr(0, dot);
    path.remove_prefix(std::min(dot + 1, path.size()));
    std::int64_t place = 0;
    auto read = std::from_chars(part.data(), part.data() + part.size(), place);
    bool number = read.ec == std::errc() && read.ptr == part.data() + part.size();
    of = element_of(running, at, of, number ? value(place) : value(part));
  }
  return of;
}

/// The path that an argument gives: a text, or a whole number.
std::string path_of(run& running, position at, const value& what) {
  if (what.is_undefined() || what.is_none())
    return {};
  return running.printed(at, what);
}

/// What is compared: texts without their case unless it counts.
value key_of(run& running, position at, const value& what, bool case_counts) {
  auto text = what.as_text();
  return case_counts || text == nullptr ? what : running.text(at, to_lower(*text));
}

struct keyed {
  value key, item;
};

/// Merges runs from the bottom up. Unlike the library's, it cannot be led astray by an order that
/// has holes, as that of values of different types has once the run has failed.
void sort_stably(run& running, position at, std::vector<keyed>& all, bool backwards) {
  std::vector<keyed> merged(all.size());
  for (std::size_t width = 1; width < all.size() && !running.failed(); width *= 2) {
    for (std::size_t start = 0; start < all.size(); start += 2 * width) {
      auto left = start, middle = std::min(start + width, all.size()), right = middle;
      auto end = std::min(start + 2 * width, all.size());
      for (auto out = start; out < end; ++out) {
        running.spend(at, run::node_cost);
        bool takes_right = left == middle;
        if (left < middle && right < end) {
          int order = compare(running, at, all[right].key, all[left].key);
          takes_right = backwards ? order > 0 : order < 0;
        }
        merged[out] = all[takes_right ? right++ : left++];
      }
    }
    all.swap(merged);
  }
}

value sort_by(run& running,
              position at,
              value::items all,
              std::string_view path,
              bool backwards,
              bool case_counts) {
  std::vector<keyed> order;
  for (auto& item : all)
    order.push_back({key_of(running, at, by_path(running, at, item, path), case_counts), item});
  sort_stably(running, at, order, backwards);
  value::items made;
  for (auto& one : order)
    made.push_back(std::move(one.item));
  return running.list(at, std::move(made));
}

value extreme(run& running,
              position at,
              const value& of,
              const call_values& with,
              std::string_view name,
              int sign) {
  parameters given(running, at, name, with, {"case_sensitive", "attribute"});
  auto path = path_of(running, at, given.at(1));
  value best, best_key;
  bool any = false;
  for (const auto& item : running.items_of(at, of)) {
    auto key = key_of(running, at, by_path(running, at, item, path), given.flag(0, false));
    if (!any || compare(running, at, key, best_key) * sign > 0) {
      best = item;
      best_key = key;
    }
    any = true;
  }
  return best;
}

/// The rest of the arguments of `with`, after the first `count`.
call_values after(const call_values& with, std::size_t count) {
  auto rest = with;
  auto gone = static_cast<std::ptrdiff_t>(std::min(count, rest.positional.size()));
  rest.positional.erase(rest.positional.begin(), rest.positional.begin() + gone);
  return rest;
}

/// Items whose `path` passes the test that the arguments from `first` on name, or is true.
value choose(run& running,
             position at,
             const value& of,
             const call_values& with,
             std::size_t first,
             bool wanted) {
  std::string path, test;
  if (first > 0) {
    if (with.positional.empty())
      return running.fail(at, "the name of an attribute is missing");
    path = path_of(running, at, with.positional[0]);
  }
  if (with.positional.size() > first) {
    auto name = running.expect_text(at, with.positional[first], "the name of a test");
    if (name == nullptr)
      return {};
    if (!is_test(*name))
      return running.fail(
        at, fmt::format("no test '{}'; there are: {}", *name, test_names()), errc::unsupported);
    test = *name;
  }
  auto rest = after(with, first + 1);
  value::items made;
  for (const auto& item : running.items_of(at, of)) {
    if (!running.spend(at, run::node_cost))
      break;
    auto asked = by_path(running, at, item, path);
    bool holds = test.empty() ? is_true(asked) : call_test(running, at, test, asked, rest);
    if (holds == wanted)
      made.push_back(item);
  }
  return running.list(at, std::move(made));
}

} // namespace

value select(run& running, position at, const value& of, const call_values& with) {
  return choose(running, at, of, with, 0, true);
}

value reject(run& running, position at, const value& of, const call_values& with) {
  return choose(running, at, of, with, 0, false);
}

value selectattr(run& running, position at, const value& of, const call_values& with) {
  return choose(running, at, of, with, 1, true);
}

value rejectattr(run& running, position at, const value& of, const call_values& with) {
  return choose(running, at, of, with, 1, false);
}

value map_items(run& running, position at, const value& of, const call_values& with) {
  value::items made;
  if (with.positional.empty()) {
    parameters given(running, at, "map", with, {"attribute", "default"});
    auto path = path_of(running, at, given.required(0));
    for (const auto& item : running.items_of(at, of)) {
      auto found = by_path(running, at, item, path);
      made.push_back(found.is_undefined() && given.has(1) ? given.at(1) : found);
    }
    return running.list(at, std::move(made));
  }
  auto name = running.expect_text(at, with.positional[0], "the name of a filter");
  if (name == nullptr)
    return {};
  if (!is_filter(*name))
    return running.fail(
      at, fmt::format("no filter '{}'; there are: {}", *name, filter_names()), errc::unsupported);
  auto rest = after(with, 1);
  for (const auto& item : running.items_of(at, of))
    if (!running.failed())
      made.push_back(call_filter(running, at, *name, item, rest));
  return running.list(at, std::move(made));
}

value sorted(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "sort", with, {"reverse", "case_sensitive", "attribute"});
  return sort_by(running,
                 at,
                 running.items_of(at, of),
                 path_of(running, at, given.at(2)),
                 given.flag(0, false),
                 given.flag(1, false));
}

value dictsort(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "dictsort", with, {"case_sensitive", "by", "reverse"});
  auto by = given.text(1, "key");
  if (by != "key" && by != "value")
    return running.fail(at, fmt::format("dictsort orders by 'key' or 'value', not by '{}'", by));
  auto pairs = call_filter(running, at, "items", of, {});
  return sort_by(running,
                 at,
                 running.items_of(at, pairs),
                 by == "key" ? "0" : "1",
                 given.flag(2, false),
                 given.flag(0, false));
}

value unique(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "unique", with, {"case_sensitive", "attribute"});
  auto path = path_of(running, at, given.at(1));
  value::items made, seen;
  for (const auto& item : running.items_of(at, of)) {
    auto key = key_of(running, at, by_path(running, at, item, path), given.flag(0, false));
    bool known = std::any_of(seen.begin(), seen.end(), [&](const value& other) {
      return equal(key, other, running.work());
    });
    if (known)
      continue;
    seen.push_back(key);
    made.push_back(item);
  }
  return running.list(at, std::move(made));
}

value reversed(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "reverse", with, {});
  auto all = running.items_of(at, of);
  std::reverse(all.begin(), all.end());
  if (of.as_text() == nullptr)
    return running.list(at, std::move(all));
  std::string made;
  for (const auto& character : all)
    made += *character.as_text();
  return running.text(at, std::move(made));
}

value to_list(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "list", with, {});
  return of.as_list() != nullptr ? of : running.list(at, running.items_of(at, of));
}

value first_of(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "first", with, {});
  if (auto list = of.as_list())
    return list->empty() ? value() : list->front();
  auto all = running.items_of(at, of);
  return all.empty() ? value() : all.front();
}

value last_of(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "last", with, {});
  if (auto list = of.as_list())
    return list->empty() ? value() : list->back();
  auto all = running.items_of(at, of);
  return all.empty() ? value() : all.back();
}

value join(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "join", with, {"d", "attribute"});
  auto between = given.has(0) ? running.printed(at, given.at(0)) : std::string();
  auto path = path_of(running, at, given.at(1));
  std::string made;
  bool first = true;
  for (const auto& item : running.items_of(at, of)) {
    if (!running.spend(at, between.size() + run::node_cost))
      return {};
    made += first ? "" : between;
    made += running.printed(at, by_path(running, at, item, path));
    first = false;
  }
  return running.text(at, std::move(made));
}

value sum(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "sum", with, {"attribute", "start"});
  auto path = path_of(running, at, given.at(0));
  auto made = given.has(1) ? given.at(1) : value(0);
  for (const auto& item : running.items_of(at, of))
    made = apply(running, at, binary_sign::add, made, by_path(running, at, item, path));
  return made;
}

value greatest(run& running, position at, const value& of, const call_values& with) {
  return extreme(running, at, of, with, "max", 1);
}

value least(run& running, position at, const value& of, const call_values& with) {
  return extreme(running, at, of, with, "min", -1);
}

} // namespace troupe::compute::chat
