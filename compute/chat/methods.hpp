#pragma once
// The methods of texts, dictionaries and lists that templates call: those of Python that change
// nothing.

#include "compute/chat/run.hpp"

#include <string_view>

namespace troupe::compute::chat {

/// Whether values of this one's type have such a method.
bool has_method(const value& of, std::string_view name) noexcept;

/// Says it is unsupported if there is no such method.
value call_method(
  run& running, position at, const value& of, std::string_view name, const call_values& with);

} // namespace troupe::compute::chat
