#include "actors/wires/reactor_thread.hpp"

#include <pthread.h>

#include <future>

namespace troupe::actors {

reactor_thread::reactor_thread(options wanted)
  : options_(std::move(wanted)), reactor_(options_.loop) {}

result<std::unique_ptr<reactor_thread>> reactor_thread::start(caf::actor_system& system,
                                                              options wanted,
                                                              reactor::wire_maker wires,
                                                              spawner spawn) {
  std::unique_ptr<reactor_thread> made{new reactor_thread{std::move(wanted)}};
  auto& one = *made;
  auto started = std::make_shared<std::promise<result<void>>>();
  auto outcome = started->get_future();
  one.thread_ =
    std::thread([&one, &system, started, make = std::move(wires), begin = std::move(spawn)] {
      one.body(system, make, begin, [&](result<void> how) { started->set_value(std::move(how)); });
    });
  if (auto how = outcome.get(); !how)
    return how.error();
  return made;
}

void reactor_thread::body(caf::actor_system& system,
                          const reactor::wire_maker& make,
                          const spawner& spawn,
                          const std::function<void(result<void>)>& started) {
  pthread_setname_np(pthread_self(), options_.name.substr(0, 15).c_str());
  const auto wires = reactor_.open(make);
  if (!wires) {
    started(wires.error());
    return;
  }
  spawn(reactor_, **wires);
  started({});
  reactor_.run(system);
}

reactor_thread::~reactor_thread() {
  reactor_.stop();
  if (thread_.joinable())
    thread_.join();
}

} // namespace troupe::actors
