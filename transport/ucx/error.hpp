#pragma once
// UCX status codes as errors of ours, translated in this one place.

#include "config/result.hpp"

#include <ucs/type/status.h>

#include <string>

namespace troupe::transport::ucx {

/// The error for a status other than UCS_OK and UCS_INPROGRESS, with UCX's own sentence; logs it.
/// `doing` says what failed, for example "send to peer 3".
error to_error(ucs_status_t status, const std::string& doing);

} // namespace troupe::transport::ucx
