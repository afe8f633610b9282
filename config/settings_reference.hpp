#pragma once
// docs/configuration.md: the table of settings as a page for people.

#include "config/settings_table.hpp"

#include <string>

namespace troupe {

/// The whole page as Markdown. A test compares it with the file; the build target
/// `configuration_page` writes the file.
std::string settings_reference();

/// One of its sections: a heading, a sentence and the table of its keys. Also for scenarios.
std::string section_reference(const setting_section& section);

} // namespace troupe
