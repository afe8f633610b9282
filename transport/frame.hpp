#pragma once
// The frame: what travels between two ranks. A fixed header and a payload by reference.

#include "compute/buffer.hpp"
#include "config/dtype.hpp"
#include "config/ids.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace troupe::transport {

/// Bumped with every change of the header or of what a kind of frame means.
inline constexpr std::uint16_t wire_version = 2;

/// Kinds below first_message_kind belong to the transport and its collectives; the others to
/// actors/wires/codec.
enum class frame_kind : std::uint8_t {
  hello = 1,      ///< First frame on a link: proves the epoch's token (payload: 16 bytes).
  goodbye = 2,    ///< The peer leaves on purpose: what follows is not a fault.
  collective = 3, ///< A part of a collective operation.
  credit = 4,     ///< Tells how much was consumed; never leaves the transport.
};

inline constexpr std::uint8_t first_message_kind = 16;

/// The header in memory. On the wire, little-endian, 80 bytes:
///
///   byte  0  magic "TRPE"      4      byte 40  rows            4
///         4  wire version      2           44  columns         4
///         6  kind              1           48  payload bytes   8
///         7  dtype             1           56  digest          8
///         8  epoch             8           64  tag             8
///        16  step              8           72  source          4
///        24  sequence          8           76  destination     4
///        32  flags             8
///
/// The digest is XXH3 of the payload, seeded with XXH3 of the header (whose digest is 0 for that).
///
/// sequence counts the frames from one source to one destination within an epoch, from 1.
/// rows, columns and dtype describe a tensor payload; 0 where the payload is something else.
struct frame_header {
  std::uint16_t version = wire_version;
  std::uint8_t kind = 0;
  dtype type = dtype::f32;
  epoch_id epoch{};
  step_id step{};
  std::uint64_t sequence = 0;
  std::uint64_t flags = 0;
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t digest = 0; ///< Of header and payload; 0 = not computed.
  std::uint64_t tag = 0;    ///< For the kind's own use: operation, request, reply.
  std::uint32_t source = 0; ///< Peer key of the sender.
  std::uint32_t destination = 0;
};

inline constexpr std::size_t frame_header_bytes = 80;

/// What a wire puts in front of a payload in all: the header, a link number and a count of consumed
/// bytes.
inline constexpr std::size_t wire_header_bytes = 16 + frame_header_bytes;

struct frame {
  frame_header header;
  compute::buffer payload; ///< payload.size() == header.payload_bytes.
};

/// Writes the byte table above.
void encode(const frame_header& header, std::span<std::byte, frame_header_bytes> out);

/// Reads it; hostile bytes are expected. Errors: wrong size, magic, version (both printed;
/// mismatch), kind 0, a dtype that is not known, payload bytes that differ from
/// `payload_bytes_found`, tensor dimensions that do not give payload_bytes (contract_violation).
result<frame_header> decode(std::span<const std::byte> bytes, std::uint64_t payload_bytes_found);

/// XXH3 of the bytes, never 0 (0 stands for "not computed").
std::uint64_t digest(std::span<const std::byte> bytes) noexcept;

/// What header.digest of this frame must be; never 0. Does not look at header.digest.
std::uint64_t seal(const frame_header& header, std::span<const std::byte> payload) noexcept;

} // namespace troupe::transport
