#include "actors/wires/peer.hpp"

#include "actors/wires/codec.hpp"
#include "config/log.hpp"

namespace troupe::actors {

peer::peer(caf::actor_config& config,
           transport::transport& wires,
           transport::peer_key key,
           caf::weak_actor_ptr owner)
  : caf::actor_proxy(config), wires_(wires), key_(key), owner_(std::move(owner)) {}

void peer::enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) {
  if (dead_)
    return;
  auto outgoing = encode_message(home_system(), what->content());
  if (!outgoing) {
    report(outgoing.error());
    return;
  }
  auto sent = wires_.send(key_, std::move(*outgoing));
  if (sent)
    return;
  // A peer that is down is reported once, by the transport; what is sent to it meanwhile belongs to
  // an epoch that is about to end.
  if (wires_.link(key_))
    report(sent.error());
  else
    log::debug("peer {} does not take a frame: {}", key_, sent.error().what);
}

void peer::report(const error& why) {
  log::error("peer {} does not take a frame: {}", key_, why.what);
  if (auto owner = owner_.lock())
    owner->enqueue(nullptr,
                   caf::make_message_id(),
                   caf::make_message(peer_down{key_,
                                               static_cast<std::uint8_t>(why.code),
                                               "a frame for " + transport::name_peer(key_)
                                                 + " did not leave: " + why.what}),
                   nullptr);
}

void peer::kill_proxy(caf::execution_unit* context, caf::error reason) {
  dead_ = true;
  cleanup(std::move(reason), context);
}

caf::strong_actor_ptr make_peer(caf::actor_system& system,
                                transport::transport& wires,
                                transport::peer_key key,
                                caf::weak_actor_ptr owner) {
  caf::actor_config config;
  return caf::make_actor<peer, caf::strong_actor_ptr>(
    system.next_actor_id(), system.node(), &system, config, wires, key, std::move(owner));
}

} // namespace troupe::actors
