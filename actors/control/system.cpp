#include "actors/control/system.hpp"

#include "actors/control/silent_connections.hpp"
#include "actors/control/tls_errors.hpp"
#include "actors/control/tls_handshake.hpp"
#include "actors/host/host_network.hpp"
#include "config/address.hpp"

#include <caf/io/all.hpp>
#include <caf/openssl/manager.hpp>
#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace troupe::actors {

namespace {

using std::chrono::milliseconds;

// Two threads carry all control work: the ranks have threads of their own, and each one more takes
// a core from them.
constexpr std::size_t scheduler_threads = 2;

// For finding out why a connection failed.
constexpr milliseconds trial_time{1000};

// What is still on its way to others has so long at the end.
constexpr milliseconds end_time{1000};

// Our codes travel in a category of ours (10 characters at most).
const auto our_category = caf::atom("troupe");

class system_config : public caf::actor_system_config {
public:
  explicit system_config(const credentials& shown) {
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", scheduler_threads);
    set("middleman.workers", std::size_t{1});
    set("middleman.app-identifiers", std::vector<std::string>{"troupe"});
    add_message_types<caf::id_block::troupe>();
    load<caf::io::middleman>();
    if (!shown.secured())
      return;
    openssl_certificate = shown.certificate();
    openssl_key = shown.key();
    openssl_cafile = shown.authority();
    load<caf::openssl::manager>();
  }
};

} // namespace

struct control_plane::parts {
  parts(const cluster_settings& from, credentials held)
    : settings(from), shown(std::move(held)), config(shown), system(config) {
    system.await_actors_before_shutdown(false);
  }

  // The one place that knows whether control is encrypted.
  caf::io::middleman_actor connector() {
    return shown.secured() ? system.openssl_manager().actor_handle()
                           : system.middleman().actor_handle();
  }

  error explain_refusal(const std::string& host, std::uint16_t port, const caf::error& why);

  cluster_settings settings;
  credentials shown;
  system_config config;
  caf::actor_system system;
  std::map<std::pair<std::string, std::uint16_t>, open_socket> trials;
  bool stuck = false; // One of the framework's threads may hang in the kernel's connect().
};

result<std::unique_ptr<control_plane>> control_plane::start(const cluster_settings& settings) {
  auto shown = credentials::load(settings);
  if (!shown)
    return shown.error();
  if (shown->secured())
    keep_tls_errors_apart();
  return std::unique_ptr<control_plane>(
    new control_plane(std::make_unique<parts>(settings, std::move(*shown))));
}

control_plane::control_plane(std::unique_ptr<parts> all) : parts_(std::move(all)) {}

control_plane::~control_plane() {
  // The end of an actor system waits for its threads, and a connect() to a host that drops packets
  // takes minutes: then the threads are left to the end of the process.
  if (parts_->stuck) {
    static_cast<void>(parts_.release());
    return;
  }
  const end_of_connections bounded(end_time);
  parts_.reset();
}

caf::actor_system& control_plane::system() noexcept {
  return parts_->system;
}

bool control_plane::secured() const noexcept {
  return parts_->shown.secured();
}

result<std::uint16_t> control_plane::publish(const gateway_actor& door, std::size_t node) {
  const auto& settings = parts_->settings;
  const auto& place = settings.nodes[node];
  const auto port = static_cast<std::uint16_t>(place.port);
  const auto key = fmt::format("node[{}].{}", node, port == 0 ? "bind" : "port");
  if (!secured() && !is_loopback(place.bind))
    return error{errc::unauthorised,
                 settings.point_at(fmt::format("node[{}].bind", node),
                                   fmt::format("node {} would listen on {} without a secret or "
                                               "certificates",
                                               place.name,
                                               place.bind),
                                   "set security.secret_file, or certificates")};
  std::uint16_t bound = 0;
  caf::error refused;
  caf::scoped_actor self{parts_->system};
  self
    ->request(parts_->connector(),
              caf::infinite,
              caf::publish_atom::value,
              port,
              caf::actor_cast<caf::strong_actor_ptr>(door),
              parts_->system.message_types<gateway_actor>(),
              place.bind,
              true) // SO_REUSEADDR: a restart finds its port; it never shares a live one.
    .receive([&](std::uint16_t taken) { bound = taken; },
             [&](caf::error& why) { refused = std::move(why); });
  if (bound != 0 && secured())
    wait_for_first_words(bound);
  if (bound != 0)
    return bound;
  // The framework keeps the system's reason to itself: ask for it the same way.
  const auto again = try_bind(place.bind, port);
  return error{
    errc::invalid_config,
    settings.point_at(key,
                      fmt::format("node {} cannot listen on {}",
                                  place.name,
                                  again ? describe(parts_->system, refused) : again.error().what),
                      port == 0 ? "an address of this host would work"
                                : "another port, or 0 for any free one, would work")};
}

void control_plane::unpublish(const gateway_actor& door, std::uint16_t port) {
  caf::scoped_actor self{parts_->system};
  self
    ->request(
      parts_->connector(), milliseconds(1000), caf::unpublish_atom::value, door.address(), port)
    .receive([] {}, [](caf::error&) {}); // Closed already is as good.
}

// Why the framework could not connect: it gives no reasons, so the same is tried once more by hand.
error control_plane::parts::explain_refusal(const std::string& host,
                                            std::uint16_t port,
                                            const caf::error& why) {
  const auto where = name_endpoint(host, port);
  if (why == caf::sec::unexpected_actor_messaging_interface
      || why == caf::sec::incompatible_versions)
    return {errc::mismatch, fmt::format("{} speaks another version of the protocol", where)};
  if (why == caf::sec::no_actor_published_at_port)
    return {errc::not_now, fmt::format("{} has no door open yet", where)};
  const auto again =
    shown.secured() ? shake_hands(host, port, shown, trial_time) : reach(host, port, trial_time);
  if (!again)
    return again.error();
  if (why == caf::sec::request_timeout)
    return {errc::timed_out, fmt::format("{} took the connection but did not answer", where)};
  if (why == caf::sec::cannot_connect_to_node)
    return {errc::unreachable, fmt::format("{} could not be reached a moment ago", where)};
  return {
    errc::unauthorised,
    fmt::format("{} hung up during the handshake: it asks for a secret or certificates, which "
                "this cluster file does not name, or is no troupe",
                where)};
}

result<gateway_actor>
control_plane::connect(const std::string& host, std::uint16_t port, milliseconds deadline) {
  // The framework would wait for minutes, on one of its own threads, for a host that swallows
  // packets: those are found out first. The trial stays connected as long as this object lives,
  // since the framework names connections by their descriptors and forgets a closed one late: a
  // trial that ends could take the connection of another node with it that got its descriptor.
  if (!is_loopback(host) && !parts_->trials.contains({host, port})) {
    auto trial = connect_to(host, port, deadline);
    if (!trial)
      return trial.error();
    parts_->trials.emplace(std::pair(host, port), std::move(*trial));
  }
  caf::strong_actor_ptr found;
  std::set<std::string> interface;
  caf::error refused;
  caf::scoped_actor self{parts_->system};
  self->request(parts_->connector(), deadline, caf::connect_atom::value, host, port)
    .receive(
      [&](const caf::node_id&, caf::strong_actor_ptr& door, std::set<std::string>& offered) {
        found = std::move(door);
        interface = std::move(offered);
        if (!found)
          refused = caf::sec::no_actor_published_at_port;
      },
      [&](caf::error& why) { refused = std::move(why); });
  if (found && !parts_->system.assignable(interface, parts_->system.message_types<gateway_actor>()))
    refused = caf::sec::unexpected_actor_messaging_interface;
  if (!refused)
    return caf::actor_cast<gateway_actor>(std::move(found));
  parts_->stuck = parts_->stuck || refused == caf::sec::request_timeout;
  if (secured())
    break_silent_connections(port, milliseconds(0));
  parts_->trials.erase({host, port}); // The next try begins anew.
  return parts_->explain_refusal(host, port, refused);
}

std::string describe(caf::actor_system& system, const caf::error& what) {
  if (what.context().match_elements<std::string>())
    return what.context().get_as<std::string>(0);
  return system.render(what);
}

caf::error to_caf(const error& what) {
  return {static_cast<std::uint8_t>(static_cast<std::uint8_t>(what.code) + 1),
          our_category,
          caf::make_message(what.what)};
}

error from_caf(caf::actor_system& system, const caf::error& what) {
  if (what.category() == our_category && what.code() > 0)
    return {static_cast<errc>(what.code() - 1), describe(system, what)};
  if (what == caf::sec::request_timeout)
    return {errc::timed_out, "no answer in time"};
  if (what == caf::exit_reason::remote_link_unreachable || what == caf::sec::request_receiver_down)
    return {errc::unreachable, "the other side is gone"};
  return {errc::unreachable, describe(system, what)};
}

} // namespace troupe::actors
