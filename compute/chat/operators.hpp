#pragma once
// What the signs of an expression do with values: as in Python, within 64 bits.

#include "compute/chat/run.hpp"
#include "compute/chat/syntax.hpp"

#include <optional>

namespace troupe::compute::chat {

value apply(run& running, position at, unary_sign sign, const value& operand);
value apply(run& running, position at, binary_sign sign, const value& left, const value& right);
bool apply(run& running, position at, comparison_sign sign, const value& left, const value& right);

/// Below 0, 0 or above 0, for numbers, texts and lists of them; said to be wrong for others.
int compare(run& running, position at, const value& left, const value& right);

bool contains(run& running, position at, const value& whole, const value& part);

/// `of[key]`; undefined where there is nothing. `name` is the key as the template spells it, if it
/// does: for messages.
value element_of(
  run& running, position at, const value& of, const value& key, const std::string* name = nullptr);

/// `of[start:stop:step]`; undefined parts are not written.
value slice_of(run& running,
               position at,
               const value& of,
               const value& start,
               const value& stop,
               const value& step);

} // namespace troupe::compute::chat
