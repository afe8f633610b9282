#pragma once
// What the pictures of a bench share: colours for light and dark pages.

#include "actors/cli/svg_canvas.hpp"

namespace troupe::cli {

/// CSS. Classes: c0 ... c5 are colours of areas; grid, roof, limit and whisker are lines.
std::string_view chart_style();

} // namespace troupe::cli
