#pragma once
// Values of JSON bodies, taken with their types and ranges. Heavy: includes the JSON library, and
// only files of this folder include it.

#include "actors/serve/api_request.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors::serve {

// Each taker says what would have been right, or nothing when it was.

std::string take(const nlohmann::json& from, std::string& into);
std::string take(const nlohmann::json& from, bool& into);
std::string take_whole(const nlohmann::json& from,
                       std::uint64_t& into,
                       std::uint64_t least,
                       std::uint64_t most);
std::string take_whole(const nlohmann::json& from,
                       std::uint32_t& into,
                       std::uint64_t least,
                       std::uint64_t most);

/// `above`: the least value itself is out.
std::string
take_real(const nlohmann::json& from, float& into, double least, double most, bool above = false);

/// False: no list of ids, or an empty one.
bool take_ids(const nlohmann::json& from, std::vector<token_id>& into);

/// An object within the bounds of `rules`; the mistake where it is none.
std::optional<api_error>
parse_body(std::string_view body, const api_rules& rules, nlohmann::json& into);

api_error
wrong_value(const std::string& name, const nlohmann::json& value, const std::string& right);

std::optional<api_error> missing_field(const std::string& name);

} // namespace troupe::actors::serve
