#pragma once
// docs/configuration.md: the table of settings as a page for people.

#include <string>

namespace troupe {

/// The whole page as Markdown. A test compares it with the file; the build target
/// `configuration_page` writes the file.
std::string settings_reference();

} // namespace troupe
