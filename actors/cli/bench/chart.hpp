#pragma once
// What the pictures of a bench share: colours for light and dark pages.

#include "actors/cli/svg_canvas.hpp"

namespace troupe::cli {

/// CSS. Classes: page, grid, roof; c0 ... c5 are colours of areas; text: title, quiet, small,
/// strong, right, middle; limit is a line.
std::string_view chart_style();

} // namespace troupe::cli
