#pragma once
// A thread with a reactor and a transport of its own: the body of a rank, and of the conductor. The
// transport is made, used and closed on that thread.

#include "actors/wires/reactor.hpp"

#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace troupe::actors {

class reactor_thread {
public:
  /// Spawns the actor that lives here; runs on the thread before the loop.
  using spawner = std::function<void(reactor&, transport::transport&)>;

  struct options {
    std::string name; ///< Of the thread, up to 15 characters.
    reactor_options loop;
  };

  /// Starts the thread and returns when its actor is spawned, with the transport's error otherwise.
  static result<std::unique_ptr<reactor_thread>>
  start(caf::actor_system& system, options wanted, reactor::wire_maker wires, spawner spawn);

  /// Stops the loop if it still runs, and waits for the thread.
  ~reactor_thread();

private:
  explicit reactor_thread(options wanted);

  void body(caf::actor_system& system,
            const reactor::wire_maker& make,
            const spawner& spawn,
            const std::function<void(result<void>)>& started);

  options options_;
  reactor reactor_;
  std::thread thread_;
};

} // namespace troupe::actors
