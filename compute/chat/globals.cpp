#include "compute/chat/globals.hpp"

#include <fmt/format.h>

#include <ctime>
#include <map>

namespace troupe::compute::chat {

namespace {

constexpr std::int64_t longest_range = 100000; ///< As in Jinja's sandbox.

/// What `namespace(...)` makes: the one thing that a template can change from inside of a loop.
class name_space : public object {
public:
  value attribute(std::string_view name) const override {
    auto found = held_.find(name);
    return found != held_.end() ? found->second : value();
  }

  bool set(const std::string& name, value what) override {
    held_[name] = std::move(what);
    return true;
  }

private:
  std::map<std::string, value, std::less<>> held_;
};

value make_range(run& running, position at, const call_values& with) {
  parameters given(running, at, "range", with, {"start", "stop", "step"});
  std::int64_t start = 0, stop = 0, step = given.integer(2, 1);
  if (given.has(1)) {
    start = given.integer(0, 0);
    stop = given.integer(1, 0);
  } else {
    given.required(0);
    stop = given.integer(0, 0);
  }
  if (running.failed())
    return {};
  if (step == 0)
    return running.fail(at, "range: the step is 0");
  value::items made;
  for (auto number = start; step > 0 ? number < stop : number > stop;) {
    if (static_cast<std::int64_t>(made.size()) == longest_range)
      return running.fail(
        at, fmt::format("range: more than {} numbers", longest_range), errc::overloaded);
    made.emplace_back(number);
    if (__builtin_add_overflow(number, step, &number))
      break;
  }
  return running.list(at, std::move(made));
}

value make_dictionary(run& running, position at, const call_values& with) {
  dictionary made;
  if (!with.positional.empty()) {
    auto first = with.positional[0].as_dictionary();
    if (first == nullptr || with.positional.size() > 1)
      return running.fail(at, "dict takes one dictionary at most, and arguments with names");
    made = *first;
  }
  for (const auto& [name, content] : with.named)
    made.set(name, content);
  return running.entries(at, std::move(made));
}

value make_namespace(run& running, position at, const call_values& with) {
  auto made = running.keep(std::make_unique<name_space>());
  auto start = make_dictionary(running, at, with);
  if (auto entries = start.as_dictionary())
    for (const auto& [name, content] : entries->entries())
      made->set(name, content);
  return value(made);
}

value raise_exception(run& running, position at, const call_values& with) {
  parameters given(running, at, "raise_exception", with, {"message"});
  return running.fail(at, running.printed(at, given.required(0)));
}

value strftime_now(run& running, position at, const call_values& with) {
  parameters given(running, at, "strftime_now", with, {"format"});
  given.required(0);
  return formatted_time(running, at, given.text(0, ""));
}

using body = value (*)(run&, position, const call_values&);

class function : public object {
public:
  explicit function(body what) : body_(what) {}

  std::optional<value> call(run& running, position at, const call_values& with) override {
    return body_(running, at, with);
  }

private:
  body body_;
};

} // namespace

value formatted_time(run& running, position at, const std::string& format) {
  auto seconds = std::chrono::system_clock::to_time_t(running.now());
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char made[1024];
  // strftime tells neither "empty" from "too long" nor a bad conversion: one byte more is always
  // there, and Python leaves what it does not know to C as well.
  auto bytes = std::strftime(made, sizeof made, (format + ".").c_str(), &parts);
  if (bytes == 0)
    return running.fail(at, "strftime_now: the time has more than 1022 bytes in this format");
  return running.text(at, std::string(made, bytes - 1));
}

void add_globals(run& running, scopes& names) {
  static constexpr std::pair<const char*, body> all[] = {
    {"range", make_range},
    {"dict", make_dictionary},
    {"namespace", make_namespace},
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
  };
  for (auto [name, what] : all)
    names.set(name, value(running.keep(std::make_unique<function>(what))));
}

} // namespace troupe::compute::chat
