#pragma once
// result<T>: a value or an error, the part of std::expected that Troupe uses until C++23.
// Expected failures are returned this way; a broken invariant ends the process (config/check.hpp).

#include "config/check.hpp"
#include "config/errc.hpp"

#include <string>
#include <utility>
#include <variant>

namespace troupe {

/// What went wrong: the kind, and a sentence for people that says what, where, the value that was
/// found and the values that would work.
struct error {
  errc code;
  std::string what;
};

/// The same error, told from one level further out: "loading shard 2: <what>".
inline error with_context(std::string context, const error& cause) {
  return {cause.code, std::move(context) + ": " + cause.what};
}

template <class T>
class [[nodiscard]] result {
public:
  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}

  result(troupe::error failure) : state_(std::in_place_index<1>, std::move(failure)) {}

  explicit operator bool() const noexcept { return state_.index() == 0; }

  bool has_value() const noexcept { return state_.index() == 0; }

  T& operator*() & { return value(); }

  const T& operator*() const& { return value(); }

  T&& operator*() && { return std::move(value()); }

  T* operator->() { return &value(); }

  const T* operator->() const { return &value(); }

  T& value() & {
    check(has_value(), "result holds a value where one is taken");
    return std::get<0>(state_);
  }

  const T& value() const& {
    check(has_value(), "result holds a value where one is taken");
    return std::get<0>(state_);
  }

  T&& value() && { return std::move(value()); }

  const troupe::error& error() const& {
    check(!has_value(), "result holds an error where one is taken");
    return std::get<1>(state_);
  }

private:
  std::variant<T, troupe::error> state_;
};

template <>
class [[nodiscard]] result<void> {
public:
  result() = default;

  result(troupe::error failure) : state_(std::move(failure)) {}

  explicit operator bool() const noexcept { return state_.index() == 0; }

  bool has_value() const noexcept { return state_.index() == 0; }

  const troupe::error& error() const& {
    check(!has_value(), "result holds an error where one is taken");
    return std::get<1>(state_);
  }

private:
  std::variant<std::monostate, troupe::error> state_;
};

} // namespace troupe
