// What a rank's wires bring, and what it notes of them.

#include "actors/rank/rank_state.hpp"

namespace troupe::actors {

void rank_state::attend(transport::transport& wires) {
  setup.wires = &wires;
  wires.on_frame([this](transport::peer_key from, transport::frame&& received) {
    take_frame(from, std::move(received));
  });
  wires.on_down([this](transport::peer_key peer, const error& why) {
    group_.member_down(peer, why);
    self_->send(rank_actor{self_}, peer_down{peer, static_cast<std::uint8_t>(why.code), why.what});
  });
}

void rank_state::take_frame(transport::peer_key from, transport::frame&& received) {
  rank_board::add(setup.board->progress, 1);
  const auto& header = received.header;
  setup.last_deeds->note(
    {recorded::frame_in, header.kind, from, header.sequence, header.payload_bytes});
  if (received.header.kind == static_cast<std::uint8_t>(transport::frame_kind::collective)) {
    group_.accept(from, std::move(received));
    return;
  }
  auto message = decode_message(self_->system(), std::move(received));
  if (message)
    self_->enqueue(nullptr, caf::make_message_id(), std::move(*message), nullptr);
  else
    log::warn("rank {} peer {}: {}", number(setup.rank), from, message.error().what);
}

void rank_state::count_wires() {
  const auto& counters = setup.wires->counters();
  auto& board = *setup.board;
  rank_board::set(board.frames_sent, counters.frames_sent);
  rank_board::set(board.payload_bytes_sent, counters.payload_bytes_sent);
  rank_board::set(board.header_bytes_sent, counters.header_bytes_sent);
  rank_board::set(board.frames_received, counters.frames_received);
  rank_board::set(board.tensor_copies, counters.tensor_copies);
  rank_board::set(board.refused_frames, counters.frames_refused);
}

void rank_state::take(const fault_order& order) {
  if (auto ordered = read_order(*setup.settings, order))
    setup.faults->add({*ordered});
}

void rank_state::note_frame(message_kind kind, transport::peer_key to, std::uint64_t amount) {
  setup.last_deeds->note({recorded::frame_out, static_cast<std::uint8_t>(kind), to, 0, amount});
}

} // namespace troupe::actors
