#pragma once
// docs/states.md, made from the phase tables.

#include <string>

namespace troupe::tidy {

/// The whole page.
std::string states_page();

} // namespace troupe::tidy
