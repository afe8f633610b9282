#pragma once
// What a chat template computes with: the values of JSON, and what Jinja adds to them.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::compute::chat {

class dictionary;
class object;

/// Undefined, which prints as nothing: what a default-constructed value is.
struct undefined_name {
  const std::string* name = nullptr; ///< As the template spells it, for messages.
};

/// One value. Copies share texts, lists and dictionaries, which never change once they are made, so
/// a value can neither hold itself nor be seen half written, and threads may share one.
class value {
public:
  using items = std::vector<value>;

  using missing = undefined_name;

  struct none_type {};

  value() = default;

  value(missing what) : data_(what) {}

  value(none_type) : data_(none_type{}) {}

  value(bool truth) : data_(truth) {}

  value(std::int64_t number) : data_(number) {}

  value(int number) : data_(std::int64_t{number}) {}

  value(std::size_t number) : data_(static_cast<std::int64_t>(number)) {}

  value(double number) : data_(number) {}

  value(std::string text) : data_(std::make_shared<const std::string>(std::move(text))) {}

  value(std::string_view text) : value(std::string(text)) {}

  value(const char* text) : value(std::string(text)) {}

  value(items list);

  value(dictionary entries);

  /// `what` outlives the value: objects belong to the rendering that made them.
  explicit value(object* what) : data_(what) {}

  static value none() { return none_type{}; }

  bool is_undefined() const noexcept { return std::holds_alternative<missing>(data_); }

  bool is_none() const noexcept { return std::holds_alternative<none_type>(data_); }

  bool is_number() const noexcept { return as_integer() != nullptr || as_real() != nullptr; }

  // The one that it is, or null.

  const missing* as_missing() const noexcept { return std::get_if<missing>(&data_); }

  const bool* as_boolean() const noexcept { return std::get_if<bool>(&data_); }

  const std::int64_t* as_integer() const noexcept { return std::get_if<std::int64_t>(&data_); }

  const double* as_real() const noexcept { return std::get_if<double>(&data_); }

  const std::string* as_text() const noexcept { return shared<std::string>(); }

  const items* as_list() const noexcept {
    auto held = shared<list>();
    return held != nullptr ? &held->content : nullptr;
  }

  const dictionary* as_dictionary() const noexcept { return shared<dictionary>(); }

  object* as_object() const noexcept {
    auto held = std::get_if<object*>(&data_);
    return held != nullptr ? *held : nullptr;
  }

  /// Lists and dictionaries inside of each other; 0 for what is neither.
  std::size_t depth() const noexcept;

private:
  struct list {
    items content;
    std::size_t depth;
  };

  template <class T>
  const T* shared() const noexcept {
    auto held = std::get_if<std::shared_ptr<const T>>(&data_);
    return held != nullptr ? held->get() : nullptr;
  }

  std::variant<missing,
               none_type,
               bool,
               std::int64_t,
               double,
               std::shared_ptr<const std::string>,
               std::shared_ptr<const list>,
               std::shared_ptr<const dictionary>,
               object*>
    data_;
};

/// Keys that are texts, in the order in which they came.
class dictionary {
public:
  using entry = std::pair<std::string, value>;

  dictionary() = default;

  dictionary(std::initializer_list<entry> entries) {
    for (const auto& [key, content] : entries)
      set(key, content);
  }

  /// Replaces the value of a key that is there.
  void set(std::string key, value content);

  /// Null: no such key.
  const value* find(std::string_view key) const;

  const std::vector<entry>& entries() const noexcept { return entries_; }

  std::size_t size() const noexcept { return entries_.size(); }

  std::size_t depth() const noexcept { return depth_; }

private:
  std::vector<entry> entries_;
  std::map<std::string, std::size_t, std::less<>> places_;
  std::size_t depth_ = 1;
};

inline value::value(dictionary entries)
  : data_(std::make_shared<const dictionary>(std::move(entries))) {}

/// How Python would name its type in a message: "str", "list", "undefined" ...
std::string_view type_name(const value& what) noexcept;

/// What `if` asks.
bool is_true(const value& what) noexcept;

/// `==`. Numbers compare by value, whatever their type. Each comparison of two parts takes from
/// `work`; with none left the answer is false and means nothing.
bool equal(const value& left, const value& right, std::size_t& work) noexcept;

/// Booleans and numbers as a number; false: it is none.
bool to_number(const value& what, double& number) noexcept;

/// Booleans and integers; false: it is none.
bool to_integer(const value& what, std::int64_t& number) noexcept;

} // namespace troupe::compute::chat
