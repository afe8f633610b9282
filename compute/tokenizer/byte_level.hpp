#pragma once
// GPT-2's spelling of bytes as printable characters, with which byte-level vocabularies are
// written.

#include <string>
#include <string_view>

namespace troupe::compute::byte_level {

/// Appends each byte of `bytes` as its character: 'A' stays, a space becomes U+0120.
/// Source: bytes_to_unicode() of GPT-2's encoder.py.
void spell(std::string_view bytes, std::string& out);

/// The bytes that a piece of valid UTF-8 spells; a piece with a character that spells no byte
/// stands for itself, whole, as in HF's decoder.
std::string unspell(std::string_view piece);

} // namespace troupe::compute::byte_level
