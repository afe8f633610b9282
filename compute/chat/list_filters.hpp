#pragma once
// The filters that take a list, or whatever `for` runs over, and choose from it or order it.

#include "compute/chat/run.hpp"

namespace troupe::compute::chat {

value dictsort(run& running, position at, const value& of, const call_values& with);
value first_of(run& running, position at, const value& of, const call_values& with);
value greatest(run& running, position at, const value& of, const call_values& with);
value join(run& running, position at, const value& of, const call_values& with);
value last_of(run& running, position at, const value& of, const call_values& with);
value least(run& running, position at, const value& of, const call_values& with);
value map_items(run& running, position at, const value& of, const call_values& with);
value reject(run& running, position at, const value& of, const call_values& with);
value rejectattr(run& running, position at, const value& of, const call_values& with);
value reversed(run& running, position at, const value& of, const call_values& with);
value select(run& running, position at, const value& of, const call_values& with);
value selectattr(run& running, position at, const value& of, const call_values& with);
value sorted(run& running, position at, const value& of, const call_values& with);
value sum(run& running, position at, const value& of, const call_values& with);
value to_list(run& running, position at, const value& of, const call_values& with);
value unique(run& running, position at, const value& of, const call_values& with);

} // namespace troupe::compute::chat
