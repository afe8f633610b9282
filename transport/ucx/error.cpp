#include "transport/ucx/error.hpp"

#include "config/log.hpp"

namespace troupe::transport::ucx {

namespace {

errc code_of(ucs_status_t status) {
  switch (status) {
  case UCS_ERR_NO_MEMORY:
  case UCS_ERR_NO_RESOURCE:
  case UCS_ERR_SHMEM_SEGMENT: return errc::out_of_memory;
  case UCS_ERR_INVALID_PARAM:
  case UCS_ERR_INVALID_ADDR:
  case UCS_ERR_MESSAGE_TRUNCATED:
  case UCS_ERR_OUT_OF_RANGE: return errc::contract_violation;
  case UCS_ERR_NO_DEVICE:
  case UCS_ERR_NO_ELEM: return errc::invalid_config;
  case UCS_ERR_NOT_IMPLEMENTED:
  case UCS_ERR_UNSUPPORTED: return errc::unsupported;
  case UCS_ERR_TIMED_OUT: return errc::timed_out;
  case UCS_ERR_CANCELED: return errc::cancelled;
  default:
    return errc::unreachable; // Resets, endpoint timeouts, lost links, unreachable addresses.
  }
}

} // namespace

error to_error(ucs_status_t status, const std::string& doing) {
  error found{code_of(status), doing + ": " + ucs_status_string(status)};
  log::debug("ucx status {} error {} what \"{}\"",
             static_cast<int>(status),
             to_string(found.code),
             found.what);
  return found;
}

} // namespace troupe::transport::ucx
