// The header of a frame from another rank: what is accepted is written back to the same bytes.

#include "transport/frame.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

using namespace troupe::transport;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  std::uint64_t payload_bytes = 0; // as the header says, so that more of it is looked at
  if (size >= 56)
    std::memcpy(&payload_bytes, data + 48, sizeof payload_bytes);
  auto header = decode(bytes, payload_bytes);
  if (!header)
    return 0;
  std::array<std::byte, frame_header_bytes> again;
  encode(*header, again);
  auto second = decode(again, payload_bytes);
  if (!second || std::memcmp(data, again.data(), 8) != 0)
    std::abort();
  return 0;
}
