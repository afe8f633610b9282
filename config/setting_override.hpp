#pragma once
// "--set key=value": one setting, changed from the command line before the file is interpreted.

#include "config/source_mark.hpp"
#include "config/toml_reader.hpp"

#include <string_view>

namespace troupe {

/// Puts "model.context=4096", "node.a.threads=2" or "node[0].threads=2" into the tree of a cluster
/// file as if the file had said so; whether key and value are right is found out by whoever reads
/// the tree. An option that names no key, or a node that does not exist, is a mistake.
void apply_override(toml_value& file, std::string_view option, mistakes& found);

} // namespace troupe
