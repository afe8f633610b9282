#pragma once
// The words of JSON schema (draft 2020-12): which are understood, which say nothing about a value.

#include "compute/chat/value.hpp"

#include <string>
#include <string_view>

namespace troupe::compute {

/// Title, description, default ...: they do not change what is valid.
bool is_annotation(std::string_view key) noexcept;

bool is_keyword(std::string_view key) noexcept;

/// "null", "boolean" ...
bool is_type(std::string_view name) noexcept;

/// All of them with ", " between.
std::string keyword_list();
std::string type_list();

bool is_of_type(const chat::value& what, std::string_view type) noexcept;

/// What a reference within a schema means, "#/$defs/name": RFC 6901 without the escapes of URIs.
/// Null: there is nothing.
const chat::value* schema_at(const chat::value& root, std::string_view reference);

} // namespace troupe::compute
