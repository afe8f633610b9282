#pragma once
// UTF-8 as tokenizers need it: validation, code points, the classes of characters, and the assembly
// of whole characters from bytes that come in pieces.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::compute::utf8 {

/// The offset of the first byte that is not part of a well-formed character (RFC 3629: no overlong
/// forms, no surrogates, nothing above U+10FFFF), or nothing if all are.
std::optional<std::size_t> first_invalid_byte(std::string_view text) noexcept;

/// The number of bytes of the character that starts with `lead`, in valid text.
constexpr std::size_t length(char lead) noexcept {
  auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// The code point at the start of non-empty valid text.
char32_t first(std::string_view text) noexcept;

/// The code point at the end of non-empty valid text.
char32_t last(std::string_view text) noexcept;

void append(std::string& text, char32_t point);

/// White_Space of the Unicode character database, which is Rust's char::is_whitespace.
bool is_whitespace(char32_t point) noexcept;
/// General category N*: Rust's char::is_numeric.
bool is_numeric(char32_t point) noexcept;
/// General category P*, and the ASCII symbols that HF counts as punctuation.
bool is_punctuation(char32_t point) noexcept;
/// \w of Rust's regex: alphabetic, marks, decimal digits, connectors, joiners.
bool is_word(char32_t point) noexcept;

/// What an invalid sequence becomes.
enum class invalid_bytes : std::uint8_t {
  /// One U+FFFD for a maximal part of a character that could have continued (Unicode, 3.9;
  /// Rust's from_utf8_lossy): byte-level tokenizers.
  one_per_part,
  /// One U+FFFD a byte: sentencepiece and byte_fallback.
  one_per_byte,
};

/// Bytes in, whole characters out. Holds at most the 3 bytes of an incomplete character; bytes that
/// can no longer become one are replaced at once.
class assembler {
public:
  explicit assembler(invalid_bytes policy) : policy_(policy) {}

  void push(std::string_view bytes, std::string& out);
  /// The text is over: an incomplete character is invalid.
  void flush(std::string& out);

private:
  void start(unsigned char lead, std::string& out);
  void replace(std::string& out);

  invalid_bytes policy_;
  char held_[4] = {};
  std::size_t held_bytes_ = 0;
  std::size_t wanted_bytes_ = 0;
  unsigned char next_low_ = 0, next_high_ = 0; ///< What the next byte may be.
};

} // namespace troupe::compute::utf8
