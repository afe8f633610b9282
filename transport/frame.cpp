#include "transport/frame.hpp"

#include <fmt/core.h>
#include <xxhash.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h> // The same digests by the widest vectors of this host.
#endif

#include <bit>
#include <cstring>

namespace troupe::transport {

namespace {

constexpr std::array magic{std::byte{'T'}, std::byte{'R'}, std::byte{'P'}, std::byte{'E'}};

// Fields are copied as they lie in memory, which is the wire's order on the machines we build for.
static_assert(std::endian::native == std::endian::little);

template <class T>
void put(std::span<std::byte, frame_header_bytes> out, std::size_t at, T value) {
  std::memcpy(out.data() + at, &value, sizeof value);
}

template <class T>
T get(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

error violation(std::string what) {
  return {errc::contract_violation, std::move(what)};
}

bool known(dtype type) {
  switch (type) {
  case dtype::f32:
  case dtype::f16:
  case dtype::bf16: return true;
  case dtype::int8:
  case dtype::int4: break;
  }
  return false;
}

/// Whether rows * columns elements take exactly `bytes`; the product may exceed 64 bits.
bool dimensions_give(const frame_header& header, std::uint64_t bytes) {
  const auto element = static_cast<std::uint64_t>(size_of(header.type));
  const auto elements = std::uint64_t{header.rows} * header.columns;
  return bytes % element == 0 && bytes / element == elements;
}

result<void> check_fields(const frame_header& header, std::uint64_t payload_bytes_found) {
  if (header.kind == 0)
    return violation("frame of kind 0, kinds start at 1");
  if (!known(header.type))
    return violation(fmt::format("frame with dtype {}, known are 0 (f32), 1 (f16), 2 (bf16)",
                                 static_cast<unsigned>(header.type)));
  if (header.payload_bytes != payload_bytes_found)
    return violation(fmt::format(
      "frame announces {} bytes of payload, {} came", header.payload_bytes, payload_bytes_found));
  const bool is_tensor = header.rows != 0 || header.columns != 0;
  if (is_tensor && !dimensions_give(header, header.payload_bytes))
    return violation(fmt::format("frame of {} x {} {} elements with {} bytes of payload",
                                 header.rows,
                                 header.columns,
                                 to_string(header.type),
                                 header.payload_bytes));
  return {};
}

} // namespace

void encode(const frame_header& header, std::span<std::byte, frame_header_bytes> out) {
  std::memcpy(out.data(), magic.data(), magic.size());
  put(out, 4, header.version);
  put(out, 6, header.kind);
  put(out, 7, header.type);
  put(out, 8, header.epoch);
  put(out, 16, header.step);
  put(out, 24, header.sequence);
  put(out, 32, header.flags);
  put(out, 40, header.rows);
  put(out, 44, header.columns);
  put(out, 48, header.payload_bytes);
  put(out, 56, header.digest);
  put(out, 64, header.tag);
  put(out, 72, header.source);
  put(out, 76, header.destination);
}

result<frame_header> decode(std::span<const std::byte> bytes, std::uint64_t payload_bytes_found) {
  if (bytes.size() != frame_header_bytes)
    return violation(
      fmt::format("frame header of {} bytes, it has {}", bytes.size(), frame_header_bytes));
  if (std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    return violation(
      fmt::format("frame starts with {:#010x}, not with TRPE", get<std::uint32_t>(bytes, 0)));
  frame_header header;
  header.version = get<std::uint16_t>(bytes, 4);
  if (header.version != wire_version)
    return error{
      errc::mismatch,
      fmt::format("peer speaks wire version {}, this build {}", header.version, wire_version)};
  header.kind = get<std::uint8_t>(bytes, 6);
  header.type = static_cast<dtype>(get<std::uint8_t>(bytes, 7));
  header.epoch = static_cast<epoch_id>(get<std::uint64_t>(bytes, 8));
  header.step = static_cast<step_id>(get<std::uint64_t>(bytes, 16));
  header.sequence = get<std::uint64_t>(bytes, 24);
  header.flags = get<std::uint64_t>(bytes, 32);
  header.rows = get<std::uint32_t>(bytes, 40);
  header.columns = get<std::uint32_t>(bytes, 44);
  header.payload_bytes = get<std::uint64_t>(bytes, 48);
  header.digest = get<std::uint64_t>(bytes, 56);
  header.tag = get<std::uint64_t>(bytes, 64);
  header.source = get<std::uint32_t>(bytes, 72);
  header.destination = get<std::uint32_t>(bytes, 76);
  if (auto fits = check_fields(header, payload_bytes_found); !fits)
    return fits.error();
  return header;
}

std::uint64_t seal(const frame_header& header, std::span<const std::byte> payload) noexcept {
  auto unsealed = header;
  unsealed.digest = 0;
  std::array<std::byte, frame_header_bytes> bytes;
  encode(unsealed, bytes);
  const auto seed = XXH3_64bits(bytes.data(), bytes.size());
  const std::uint64_t found = XXH3_64bits_withSeed(payload.data(), payload.size(), seed);
  return found == 0 ? 1 : found;
}

std::uint64_t digest(std::span<const std::byte> bytes) noexcept {
  const std::uint64_t found = XXH3_64bits(bytes.data(), bytes.size());
  return found == 0 ? 1 : found;
}

} // namespace troupe::transport
