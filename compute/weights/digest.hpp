#pragma once
// 128-bit digests (XXH3) of weights and descriptions: ranks compare them when they start. They find
// accidents, not attackers.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace troupe::compute {

using digest128 = std::array<std::byte, 16>;

/// 32 hexadecimal digits.
std::string to_string(const digest128& digest);

/// Digest of what is added, in order; where one addition ends and the next begins does not count.
class digest_stream {
public:
  digest_stream();
  ~digest_stream();
  digest_stream(const digest_stream&) = delete;
  digest_stream& operator=(const digest_stream&) = delete;

  void add(std::span<const std::byte> bytes);

  /// Adds the length before the text, so that ("ab", "c") and ("a", "bc") differ.
  void add_text(std::string_view text);

  void add_number(std::uint64_t value);

  digest128 digest() const;

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace troupe::compute
