#pragma once
// Who may ask: API keys, and which web pages. Constant after loading; any thread.

#include "actors/serve/http.hpp"
#include "config/result.hpp"
#include "config/settings.hpp"

#include <string>
#include <vector>

namespace troupe::actors::serve {

class access {
public:
  /// Reads the keys. Errors: invalid_config that points at serve.keys_file: a line that is shorter
  /// than 16 characters or not printable, or no key at all.
  static result<access> load(const cluster_settings& settings);

  /// Empty where the request may go on; else why not, for an answer with 403. A browser says which
  /// page sends a request: it must be one of serve.origins, or come from here. Without keys on
  /// loopback the name that was asked for must be one of this host, or a page could reach it under
  /// a name of its own (DNS rebinding).
  std::string find_foreign_page(const http_request& asked) const;

  /// Whether it shows a key, or none is needed.
  bool has_key(const http_request& asked) const;

  /// What a browser needs to see in the answer.
  std::vector<http_header> headers_for(const http_request& asked) const;

private:
  bool allows(const std::string& origin) const;

  std::vector<std::string> keys_;
  std::vector<std::string> origins_;
  bool only_local_names_ = false;
};

} // namespace troupe::actors::serve
