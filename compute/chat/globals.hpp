#pragma once
// The functions that every chat template finds: range, dict, namespace, raise_exception and
// strftime_now.

#include "compute/chat/run.hpp"
#include "compute/chat/scopes.hpp"

namespace troupe::compute::chat {

void add_globals(run& running, scopes& names);

/// Time as strftime of C writes it in local time, without a locale.
value formatted_time(run& running, position at, const std::string& format);

} // namespace troupe::compute::chat
