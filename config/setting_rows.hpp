#pragma once
// Rows of the table of settings that have files of their own; part of config/settings_table.cpp.

#include "config/settings.hpp"
#include "config/settings_table.hpp"

#include <vector>

namespace troupe {

std::vector<setting> rows(serve_settings& s);
std::vector<setting> rows(fault_settings& s);

} // namespace troupe
