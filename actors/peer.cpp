#include "actors/peer.hpp"

#include "actors/codec.hpp"
#include "config/log.hpp"

namespace troupe::actors {

peer::peer(caf::actor_config& config, transport::transport& wires, transport::peer_key key)
  : caf::actor_proxy(config), wires_(wires), key_(key) {}

void peer::enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) {
  if (dead_)
    return;
  auto outgoing = encode_message(home_system(), what->content());
  if (!outgoing) {
    log::error("peer {} {}", key_, outgoing.error().what);
    return;
  }
  // A peer that is down is reported once, by the transport; what is sent to it meanwhile belongs to
  // an epoch that is about to end.
  if (auto sent = wires_.send(key_, std::move(*outgoing)); !sent)
    log::debug("peer {} does not take a frame: {}", key_, sent.error().what);
}

void peer::kill_proxy(caf::execution_unit* context, caf::error reason) {
  dead_ = true;
  cleanup(std::move(reason), context);
}

caf::strong_actor_ptr
make_peer(caf::actor_system& system, transport::transport& wires, transport::peer_key key) {
  caf::actor_config config;
  return caf::make_actor<peer, caf::strong_actor_ptr>(
    system.next_actor_id(), system.node(), &system, config, wires, key);
}

} // namespace troupe::actors
