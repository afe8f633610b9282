#pragma once
// One rendering: what it may still spend, what it made, and the first thing that went wrong.

#include "compute/chat/render_limits.hpp"
#include "compute/chat/tokens.hpp"
#include "compute/chat/value.hpp"
#include "config/result.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::compute::chat {

class run;

struct call_values {
  std::vector<value> positional;
  std::vector<std::pair<std::string, value>> named;
};

/// What is neither JSON nor undefined: functions, macros, loops, namespaces.
class object {
public:
  virtual ~object() = default;

  /// Undefined: it has none of this name.
  virtual value attribute(std::string_view) const { return {}; }

  /// Nothing: it is not something to call.
  virtual std::optional<value> call(run&, position, const call_values&) { return std::nullopt; }

  /// `this.name(...)`. Nothing: call what the attribute of that name holds.
  virtual std::optional<value> call_member(run&, position, std::string_view, const call_values&) {
    return std::nullopt;
  }

  /// False: its attributes are not for templates to set.
  virtual bool set(const std::string&, value) { return false; }
};

/// After a failure everything gives undefined and costs nothing, so that whoever computes does not
/// have to look; loops do, and end.
class run {
public:
  static constexpr std::size_t node_cost = 16;

  run(const render_limits& limits, std::chrono::system_clock::time_point now)
    : limits_(limits), work_(limits.work), now_(now) {}

  /// Always undefined. invalid_argument: the template does not go with these messages.
  value fail(position at, std::string_view sentence, errc code = errc::invalid_argument);

  bool failed() const noexcept { return failure_.has_value(); }

  const error& failure() const { return *failure_; }

  /// False: it failed, now or before.
  bool spend(position at, std::size_t cost);

  /// What is left, for those who count by themselves; spend(at, 0) tells whether they ran out.
  std::size_t& work() noexcept { return work_; }

  const render_limits& limits() const noexcept { return limits_; }

  std::chrono::system_clock::time_point now() const noexcept { return now_; }

  // Values that a template makes, paid for and within the limits.

  value text(position at, std::string made);
  value list(position at, value::items made);
  value entries(position at, dictionary made);

  /// What `{{ what }}` prints.
  std::string printed(position at, const value& what);

  /// The text, or nothing after "<whose> must be a text": for arguments.
  const std::string* expect_text(position at, const value& what, std::string_view whose);
  bool expect_integer(position at, const value& what, std::string_view whose, std::int64_t& out);

  /// What `for` runs over: items, keys or characters. Undefined has none.
  value::items items_of(position at, const value& what);

  /// "'name' is undefined", as far as the name is known.
  value fail_undefined(position at, const value& what);

  /// Lives as long as the run.
  template <class Object>
  Object* keep(std::unique_ptr<Object> made) {
    auto kept = made.get();
    objects_.push_back(std::move(made));
    return kept;
  }

private:
  const render_limits& limits_;
  std::size_t work_;
  std::chrono::system_clock::time_point now_;
  std::optional<error> failure_;
  std::vector<std::unique_ptr<object>> objects_;
};

/// The arguments of one call by position or name, as a Python function with these parameters has
/// them. Said to be wrong: too many, twice, or a name that is not known.
class parameters {
public:
  parameters(run& running,
             position at,
             std::string_view function,
             const call_values& given,
             std::initializer_list<std::string_view> names);

  /// Whether it was given at all.
  bool has(std::size_t which) const { return values_[which].has_value(); }

  /// The argument, or undefined.
  value at(std::size_t which) const { return values_[which].value_or(value()); }

  value required(std::size_t which);
  std::string text(std::size_t which, std::string_view fallback);
  /// Nothing if it is missing or none.
  std::optional<std::string> optional_text(std::size_t which);
  std::int64_t integer(std::size_t which, std::int64_t fallback);
  bool flag(std::size_t which, bool fallback) const;

private:
  std::string name_of(std::size_t which) const;

  run& run_;
  position at_;
  std::string function_;
  std::vector<std::string_view> names_;
  std::vector<std::optional<value>> values_;
};

} // namespace troupe::compute::chat
