#include "actors/serve/api_error.hpp"

#include <nlohmann/json.hpp>

namespace troupe::actors::serve {

namespace {

unsigned status_of(errc code) {
  switch (code) {
  case errc::invalid_argument:
  case errc::unsupported: return 400;
  case errc::unauthorised: return 401;
  case errc::not_found: return 404;
  case errc::overloaded: return 429;
  case errc::not_now:
  case errc::unreachable:
  case errc::cancelled: return 503;
  case errc::timed_out: return 504;
  default: return 500;
  }
}

// The words that OpenAI's clients know.
const char* type_of(unsigned status) {
  switch (status) {
  case 401: return "authentication_error";
  case 403: return "permission_error";
  case 404: return "not_found_error";
  case 429: return "rate_limit_error";
  default: return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

} // namespace

api_error to_api_error(const error& what) {
  return {status_of(what.code), what.what, {}, std::string(to_string(what.code))};
}

std::string error_json(const api_error& what) {
  using nlohmann::ordered_json;
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? ordered_json() : ordered_json(text);
  };
  const ordered_json made{{"error",
                           {{"message", what.message},
                            {"type", type_of(what.status)},
                            {"param", text_or_null(what.param)},
                            {"code", text_or_null(what.code)}}}};
  return made.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

http_response error_response(const api_error& what, unsigned retry_after_s) {
  http_response made;
  made.status = what.status;
  made.body = error_json(what);
  if (what.status == 429 || what.status == 503)
    made.headers.emplace_back("Retry-After", std::to_string(retry_after_s));
  if (what.status == 401)
    made.headers.emplace_back("WWW-Authenticate", "Bearer");
  return made;
}

} // namespace troupe::actors::serve
