#pragma once
// Messages of the data road to frames and back: the only place that knows both.

#include "actors/messages.hpp"
#include "transport/frame.hpp"

namespace troupe::actors {

/// Kinds of frames that carry messages.
enum class message_kind : std::uint8_t {
  step_tokens = transport::first_message_kind,
  step_rows,
  slots_released,
  partition_input,
  step_output,
  rows_again,
  state_manifest,
  state_page,
  state_held,
};

/// The frame of a message; its tensor, if it has one, goes by reference. Any message that is not of
/// the data road is refused with invalid_argument.
result<transport::frame> encode_message(caf::actor_system& system,
                                        const caf::type_erased_tuple& content);

/// The message of a frame. The bytes may be hostile: what does not decode completely and exactly is
/// an error.
result<caf::message> decode_message(caf::actor_system& system, transport::frame&& received);

} // namespace troupe::actors
