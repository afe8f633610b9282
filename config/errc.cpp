#include "config/errc.hpp"

namespace troupe {

std::string_view to_string(errc code) noexcept {
  switch (code) {
  case errc::invalid_argument: return "invalid_argument";
  case errc::invalid_config: return "invalid_config";
  case errc::invalid_model: return "invalid_model";
  case errc::not_found: return "not_found";
  case errc::io_error: return "io_error";
  case errc::out_of_memory: return "out_of_memory";
  case errc::not_now: return "not_now";
  case errc::stale_epoch: return "stale_epoch";
  case errc::contract_violation: return "contract_violation";
  case errc::mismatch: return "mismatch";
  case errc::unauthorised: return "unauthorised";
  case errc::unreachable: return "unreachable";
  case errc::timed_out: return "timed_out";
  case errc::cancelled: return "cancelled";
  case errc::overloaded: return "overloaded";
  case errc::compute_error: return "compute_error";
  case errc::unsupported: return "unsupported";
  }
  return "unknown";
}

int exit_code(errc code) noexcept {
  switch (code) {
  case errc::invalid_argument:
  case errc::invalid_config: return 2;
  case errc::invalid_model:
  case errc::not_found:
  case errc::io_error: return 3;
  case errc::out_of_memory:
  case errc::overloaded: return 4;
  case errc::unreachable:
  case errc::timed_out: return 5;
  case errc::mismatch:
  case errc::unauthorised: return 6;
  case errc::cancelled: return 130;
  default: return 1;
  }
}

} // namespace troupe
