// JSON into values; nlohmann's parser calls back, so no second tree is built.

#include "compute/chat/value_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe::compute::chat {

namespace {

/// What is open: lists and dictionaries whose end is still to come.
class builder {
public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  bool null() { return put(value::none()); }

  bool boolean(bool truth) { return put(truth); }

  bool number_integer(number_integer_t number) { return put(std::int64_t{number}); }

  bool number_unsigned(number_unsigned_t number) {
    if (number > static_cast<number_unsigned_t>(INT64_MAX))
      return put(static_cast<double>(number));
    return put(static_cast<std::int64_t>(number));
  }

  bool number_float(number_float_t number, const string_t&) { return put(number); }

  bool string(string_t& text) { return put(std::move(text)); }

  bool binary(binary_t&) { return false; } // JSON has none

  bool start_object(std::size_t) { return open(true); }

  bool key(string_t& name) {
    open_.back().key = std::move(name);
    return true;
  }

  bool end_object() { return close(); }

  bool start_array(std::size_t) { return open(false); }

  bool end_array() { return close(); }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& failure) {
    problem_ = failure.what();
    return false;
  }

  const std::string& problem() const { return problem_; }

  value take() { return std::move(root_); }

private:
  struct level {
    bool has_keys = false;
    std::string key;
    value::items list;
    dictionary entries;
  };

  bool open(bool has_keys) {
    if (open_.size() >= most_nested) {
      problem_ = fmt::format("it is nested more than {} deep", most_nested);
      return false;
    }
    open_.push_back({});
    open_.back().has_keys = has_keys;
    return true;
  }

  bool close() {
    auto done = std::move(open_.back());
    open_.pop_back();
    return done.has_keys ? put(std::move(done.entries)) : put(std::move(done.list));
  }

  bool put(value what) {
    if (open_.empty())
      root_ = std::move(what);
    else if (open_.back().has_keys)
      open_.back().entries.set(std::move(open_.back().key), std::move(what));
    else
      open_.back().list.push_back(std::move(what));
    return true;
  }

  std::vector<level> open_;
  value root_;
  std::string problem_;
};

} // namespace

result<value> parse_json(std::string_view text) {
  builder made;
  try {
    if (nlohmann::json::sax_parse(text.begin(), text.end(), &made))
      return made.take();
  } catch (const std::exception& failure) {
    return error{errc::invalid_argument, fmt::format("it is not JSON: {}", failure.what())};
  }
  return error{errc::invalid_argument, fmt::format("it is not JSON: {}", made.problem())};
}

} // namespace troupe::compute::chat
