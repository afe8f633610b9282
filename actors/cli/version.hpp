#pragma once

#include <string>

namespace troupe::cli {

/// What this program is and what it speaks, for --version.
std::string version_text();

} // namespace troupe::cli
