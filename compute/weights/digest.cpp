#include "compute/weights/digest.hpp"

#include "config/check.hpp"

#include <xxhash.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h> // The same digests by the widest vectors of this host.
#endif

namespace troupe::compute {

std::string to_string(const digest128& digest) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (const auto byte : digest) {
    text += digits[std::to_integer<unsigned>(byte >> 4)];
    text += digits[std::to_integer<unsigned>(byte & std::byte{15})];
  }
  return text;
}

struct digest_stream::state {
  XXH3_state_t* hash = XXH3_createState();

  state() {
    check(hash != nullptr, "a digest state fits into memory");
    XXH3_128bits_reset(hash);
  }

  ~state() { XXH3_freeState(hash); }

  state(const state&) = delete;
  state& operator=(const state&) = delete;
};

digest_stream::digest_stream() : state_(std::make_unique<state>()) {}

digest_stream::~digest_stream() = default;

void digest_stream::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->hash, bytes.data(), bytes.size());
}

void digest_stream::add_text(std::string_view text) {
  add_number(text.size());
  add(std::as_bytes(std::span(text)));
}

void digest_stream::add_number(std::uint64_t value) {
  // Little-endian on every host, so that digests of different machines can be compared.
  std::array<std::byte, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(value >> (8 * i));
  add(bytes);
}

digest128 digest_stream::digest() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_->hash));
  digest128 bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(canonical.digest[i]);
  return bytes;
}

} // namespace troupe::compute
