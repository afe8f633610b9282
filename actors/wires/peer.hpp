#pragma once
// The stand-in for an actor that lives elsewhere: it has the same typed interface, and what is sent
// to it is encoded and posted by the sending thread, without a mailbox in between. A peer belongs
// to one reactor: only actors of that reactor send to it. What cannot be sent although the link is
// up is told to the owner as peer_down: nobody waits for what never left.

#include "actors/messages.hpp"
#include "transport/transport.hpp"

namespace troupe::actors {

class peer : public caf::actor_proxy {
public:
  peer(caf::actor_config& config,
       transport::transport& wires,
       transport::peer_key key,
       caf::weak_actor_ptr owner);

  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* context) override;

  /// From now on everything sent here is forgotten; monitors hear `reason`.
  void kill_proxy(caf::execution_unit* context, caf::error reason) override;

private:
  transport::transport& wires_;
  transport::peer_key key_;
  caf::weak_actor_ptr owner_;
  bool dead_ = false;

  void report(const error& why);
};

/// Makes a peer with the interface `Handle` (rank_actor or conductor_actor).
caf::strong_actor_ptr make_peer(caf::actor_system& system,
                                transport::transport& wires,
                                transport::peer_key key,
                                caf::weak_actor_ptr owner);

/// `owner` is the actor that sends.
template <class Handle, class Owner>
Handle peer_handle(Owner* owner, transport::transport& wires, transport::peer_key key) {
  return caf::actor_cast<Handle>(
    make_peer(owner->system(), wires, key, caf::actor_cast<caf::weak_actor_ptr>(owner)));
}

} // namespace troupe::actors
