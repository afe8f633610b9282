#pragma once
// How the API says no: OpenAI's error object, and which of our errors is which HTTP status.

#include "actors/serve/http.hpp"
#include "config/result.hpp"

#include <string>

namespace troupe::actors::serve {

struct api_error {
  unsigned status = 400;
  std::string message;
  std::string param; ///< The field of the request; empty: none in particular.
  std::string code;  ///< For programs: "model_not_found", or the name of our errc.
};

/// invalid_argument, unsupported: 400; unauthorised: 401; not_found: 404; overloaded: 429; not_now,
/// unreachable, cancelled (the cluster stops): 503; timed_out: 504; the rest: 500.
api_error to_api_error(const error& what);

/// {"error": {"message", "type", "param", "code"}} on one line; valid JSON whatever the bytes of
/// the message are.
std::string error_json(const api_error& what);

/// The answer to a request that fails. `retry_after_s` goes with 429 and 503.
http_response error_response(const api_error& what, unsigned retry_after_s = 1);

} // namespace troupe::actors::serve
