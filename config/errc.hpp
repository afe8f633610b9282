#pragma once
// Every way in which Troupe says no. One sentence each; the detail travels in error::what.

#include <cstdint>
#include <string_view>

namespace troupe {

enum class errc : std::uint8_t {
  invalid_argument,   ///< A value given by the caller is outside of what the call accepts.
  invalid_config,     ///< The cluster file or a command line is wrong; nothing was started.
  invalid_model,      ///< A model file is damaged, incomplete or of a kind that is not known.
  not_found,          ///< A file, tensor, node or request of that name does not exist.
  io_error,           ///< The operating system refused to read or write.
  out_of_memory,      ///< A budget or the machine's memory does not hold what was asked for.
  not_now,            ///< The phase that the receiver is in does not take this message.
  stale_epoch,        ///< The message belongs to a plan that has been replaced.
  contract_violation, ///< A partition, boundary or collective broke a rule of the contract.
  mismatch,           ///< Two ranks disagree on model, config, protocol, shape or operation.
  unauthorised,       ///< The peer did not prove that it belongs to this cluster.
  unreachable,        ///< A peer cannot be reached or went away.
  timed_out,          ///< The deadline passed; the message says which and for whom.
  cancelled,          ///< The request was withdrawn by its owner.
  overloaded,         ///< A queue or a state budget is full; try again later.
  compute_error,      ///< Arithmetic failed: a value is not finite, or a device refused.
  unsupported,        ///< A valid wish that this build or this version does not fulfil.
};

/// The name as it is written in logs and in JSON, for example "invalid_model".
std::string_view to_string(errc code) noexcept;

/// The exit code of the program for an error of this kind; documented in the README.
int exit_code(errc code) noexcept;

} // namespace troupe
