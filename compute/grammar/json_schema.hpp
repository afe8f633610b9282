#pragma once
// A JSON schema as a grammar of the texts that it allows.

#include "compute/grammar/grammar.hpp"
#include "config/result.hpp"

#include <memory>
#include <string_view>

namespace troupe::compute {

/// The subset and the texts are described in docs/json-schema.md: a valid value, written without
/// white space but for one space after ':' and ','. Every text of the grammar is valid JSON and
/// valid by the schema; not every valid value has one.
///
/// invalid_argument: no JSON, no schema, one that allows nothing, or one that is too large;
/// unsupported: a keyword that is not part of the subset. Both name the place: "properties.a: ...".
result<std::shared_ptr<const grammar>> compile_schema(std::string_view schema);

} // namespace troupe::compute
