#pragma once
// `value|filter` and `value is test`, as Jinja has them, and tojson as transformers has it.

#include "compute/chat/run.hpp"

#include <string_view>

namespace troupe::compute::chat {

/// `name` is one that is_filter() knows.
value call_filter(
  run& running, position at, std::string_view name, const value& of, const call_values& with);

/// `name` is one that is_test() knows.
bool call_test(
  run& running, position at, std::string_view name, const value& of, const call_values& with);

} // namespace troupe::compute::chat
