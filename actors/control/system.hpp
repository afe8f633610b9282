#pragma once
// The actor system of one process, made from our settings alone: no command line, environment or
// file of the framework's own is read. Opens and finds the cluster's door, over mutual TLS where
// [security] names credentials, over plain TCP on loopback otherwise; callers do not see which.

#include "actors/control/security.hpp"
#include "actors/messages.hpp"
#include "config/result.hpp"
#include "config/settings.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace troupe::actors {

class control_plane {
public:
  /// Errors: those of credentials::load.
  static result<std::unique_ptr<control_plane>> start(const cluster_settings& settings);

  /// Ends the I/O and the scheduler. Actors that still live are dropped without a word: whoever
  /// needs a good end has waited for it before.
  ~control_plane();

  control_plane(const control_plane&) = delete;
  control_plane& operator=(const control_plane&) = delete;

  caf::actor_system& system() noexcept;

  bool secured() const noexcept;

  /// Opens the door on the address and port of settings.nodes[node]; port 0 takes any free one,
  /// bound before it is told (row A13). Returns the port. Errors: invalid_config that points at the
  /// node's port or address (taken, not of this host, not allowed), unauthorised where it would
  /// listen beyond loopback without credentials.
  result<std::uint16_t> publish(const gateway_actor& door, std::size_t node);

  /// Closes the door; who is inside stays.
  void unpublish(const gateway_actor& door, std::uint16_t port);

  /// Finds the door of a head. Blocks up to `deadline`. Errors: unreachable, timed_out;
  /// unauthorised where the other side hangs up during the handshake, that is, does not hold the
  /// same credentials or is no troupe at all; mismatch where it speaks another version.
  result<gateway_actor>
  connect(const std::string& host, std::uint16_t port, std::chrono::milliseconds deadline);

private:
  struct parts;

  explicit control_plane(std::unique_ptr<parts> all);

  std::unique_ptr<parts> parts_;
};

/// For people: what the framework says about an error, its text first where a sender gave one.
std::string describe(caf::actor_system& system, const caf::error& what);

/// An error of ours inside of an error of the framework, and back: what travels in answers to
/// requests.
caf::error to_caf(const error& what);
error from_caf(caf::actor_system& system, const caf::error& what);

} // namespace troupe::actors
