#pragma once
// Texts as Python sees them: in characters, not in bytes. All texts here are valid UTF-8.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::compute::chat {

/// What str.isspace() and str.strip() take for white space.
bool is_space(char32_t point) noexcept;

std::string_view trim_start(std::string_view text) noexcept;
std::string_view trim_end(std::string_view text) noexcept;

/// Of characters that are in `characters`; white space without them: str.lstrip() and so on.
std::string_view trim_start(std::string_view text, std::optional<std::string_view> characters);
std::string_view trim_end(std::string_view text, std::optional<std::string_view> characters);

std::size_t count_characters(std::string_view text) noexcept;

/// The bytes of each character.
std::vector<std::string_view> characters_of(std::string_view text);

/// One character to one, but for "ß", which becomes "SS"; Python has some ligatures more.
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);

/// Whether every character is of the kind and there is at least one: str.isdigit() and its like.
bool all_letters(std::string_view text) noexcept;
bool all_digits(std::string_view text) noexcept;
bool all_letters_or_digits(std::string_view text) noexcept;
bool all_spaces(std::string_view text) noexcept;

/// At least one letter has a case, and all that have one have this one: str.isupper().
bool is_upper(std::string_view text) noexcept;
bool is_lower(std::string_view text) noexcept;

} // namespace troupe::compute::chat
