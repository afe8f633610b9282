#include "compute/tokenizer/digest.hpp"

#include "config/check.hpp"

#include <xxhash.h>

#include <cstring>

namespace troupe::compute {

digester::digester() : state_(XXH3_createState()) {
  check(state_ != nullptr, "there is memory for the state of a hash");
  XXH3_128bits_reset(state_.get());
}

void digester::release::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

digester& digester::add(std::string_view text) {
  add(std::uint64_t{text.size()});
  XXH3_128bits_update(state_.get(), text.data(), text.size());
  return *this;
}

digester& digester::add(std::uint64_t number) {
  unsigned char bytes[8];
  for (int at = 0; at < 8; ++at)
    bytes[at] = static_cast<unsigned char>(number >> (8 * at));
  XXH3_128bits_update(state_.get(), bytes, sizeof bytes);
  return *this;
}

std::array<std::byte, 16> digester::value() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
  std::array<std::byte, 16> bytes;
  std::memcpy(bytes.data(), canonical.digest, bytes.size());
  return bytes;
}

} // namespace troupe::compute
