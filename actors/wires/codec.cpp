#include "actors/wires/codec.hpp"

#include "config/log.hpp"

#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace troupe::actors {

namespace {

using transport::frame;

/// A message without a tensor: its fields are the payload.
template <class Message>
result<frame>
encode_fields(caf::actor_system& system, message_kind kind, step_id step, const Message& message) {
  std::vector<char> bytes;
  caf::binary_serializer sink{system, bytes};
  if (auto failure = sink(message))
    return error{errc::invalid_argument, "a message cannot be written: " + system.render(failure)};
  auto payload = compute::buffer::allocate(bytes.size());
  if (!payload)
    return payload.error();
  std::memcpy(payload->data(), bytes.data(), bytes.size());
  frame made;
  made.header.kind = static_cast<std::uint8_t>(kind);
  made.header.step = step;
  made.payload = std::move(*payload);
  return made;
}

template <class Message>
result<caf::message> decode_fields(caf::actor_system& system, const frame& received) {
  Message message;
  caf::binary_deserializer source{
    system, reinterpret_cast<const char*>(received.payload.data()), received.payload.size()};
  if (auto failure = source(message))
    return error{errc::contract_violation,
                 fmt::format("a frame of kind {} with {} bytes does not hold its message: {}",
                             received.header.kind,
                             received.payload.size(),
                             system.render(failure))};
  if (source.remaining() != 0)
    return error{errc::contract_violation,
                 fmt::format("a frame of kind {} has {} bytes after its message",
                             received.header.kind,
                             source.remaining())};
  return caf::make_message(std::move(message));
}

frame encode_boundary(const partition_input& message, const compute::buffer& tensor) {
  frame made;
  made.header.kind = static_cast<std::uint8_t>(message_kind::partition_input);
  made.header.step = message.step;
  made.header.rows = message.rows;
  made.header.columns = message.columns;
  made.header.type = static_cast<dtype>(message.type);
  made.header.tag = message.schema;
  made.payload = tensor;
  return made;
}

caf::message decode_boundary(frame&& received) {
  partition_input message;
  message.epoch = received.header.epoch;
  message.step = received.header.step;
  message.rows = received.header.rows;
  message.columns = received.header.columns;
  message.type = static_cast<std::uint8_t>(received.header.type);
  message.schema = received.header.tag;
  return caf::make_message(message, std::move(received.payload));
}

/// Rows are layers. The tag holds the page, and above it the first layer.
frame encode_page(const state_page& message, const compute::buffer& bytes) {
  frame made;
  made.header.kind = static_cast<std::uint8_t>(message_kind::state_page);
  made.header.type = dtype::f32;
  made.header.rows = message.last_unit - message.first_unit;
  made.header.columns =
    static_cast<std::uint32_t>(bytes.size() / sizeof(float) / std::max(made.header.rows, 1u));
  made.header.tag = (std::uint64_t{message.first_unit} << 32) | number(message.page);
  made.payload = bytes;
  return made;
}

caf::message decode_page(frame&& received) {
  state_page message;
  message.epoch = received.header.epoch;
  message.page = static_cast<page_id>(received.header.tag & 0xffff'ffff);
  message.first_unit = static_cast<std::uint32_t>(received.header.tag >> 32);
  message.last_unit = message.first_unit + received.header.rows;
  return caf::make_message(message, std::move(received.payload));
}

} // namespace

result<frame> encode_message(caf::actor_system& system, const caf::type_erased_tuple& content) {
  using kind = message_kind;
  if (content.match_elements<partition_input, compute::buffer>())
    return encode_boundary(content.get_as<partition_input>(0), content.get_as<compute::buffer>(1));
  if (content.match_elements<step_tokens>()) {
    const auto& message = content.get_as<step_tokens>(0);
    return encode_fields(system, kind::step_tokens, message.plan.step, message);
  }
  if (content.match_elements<step_rows>()) {
    const auto& message = content.get_as<step_rows>(0);
    return encode_fields(system, kind::step_rows, message.plan.step, message);
  }
  if (content.match_elements<rows_again>()) {
    const auto& message = content.get_as<rows_again>(0);
    return encode_fields(system, kind::rows_again, message.plan.step, message);
  }
  if (content.match_elements<step_output>()) {
    const auto& message = content.get_as<step_output>(0);
    return encode_fields(system, kind::step_output, message.step, message);
  }
  if (content.match_elements<slots_released>())
    return encode_fields(
      system, kind::slots_released, step_id{}, content.get_as<slots_released>(0));
  if (content.match_elements<state_page, compute::buffer>())
    return encode_page(content.get_as<state_page>(0), content.get_as<compute::buffer>(1));
  if (content.match_elements<state_manifest>())
    return encode_fields(
      system, kind::state_manifest, step_id{}, content.get_as<state_manifest>(0));
  if (content.match_elements<state_held>())
    return encode_fields(system, kind::state_held, step_id{}, content.get_as<state_held>(0));
  return error{errc::invalid_argument, "this message does not travel between ranks"};
}

result<caf::message> decode_message(caf::actor_system& system, frame&& received) {
  const auto& header = received.header;
  log::data("frame {} of peer {} to peer {}: epoch {}, step {}, kind {}, {} x {} {}, {} bytes",
            header.sequence,
            header.source,
            header.destination,
            number(header.epoch),
            number(header.step),
            header.kind,
            header.rows,
            header.columns,
            to_string(header.type),
            header.payload_bytes);
  switch (static_cast<message_kind>(received.header.kind)) {
  case message_kind::step_tokens: return decode_fields<step_tokens>(system, received);
  case message_kind::step_rows: return decode_fields<step_rows>(system, received);
  case message_kind::slots_released: return decode_fields<slots_released>(system, received);
  case message_kind::partition_input: return decode_boundary(std::move(received));
  case message_kind::rows_again: return decode_fields<rows_again>(system, received);
  case message_kind::step_output: return decode_fields<step_output>(system, received);
  case message_kind::state_manifest: return decode_fields<state_manifest>(system, received);
  case message_kind::state_page: return decode_page(std::move(received));
  case message_kind::state_held: return decode_fields<state_held>(system, received);
  }
  return error{errc::contract_violation,
               fmt::format("a frame of unknown kind {}", received.header.kind)};
}

} // namespace troupe::actors
