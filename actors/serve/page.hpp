#pragma once
// The page at "/": one file that needs no other, put together when the program is built.

#include "actors/serve/http.hpp"

#include <string_view>

namespace troupe::actors::serve {

/// HTML with its styles and scripts inside (actors/serve/page/, and Chart.js).
std::string_view page_html() noexcept;

/// The page, with a policy that lets a browser run and load what is in it, ask this server, and
/// nothing else. It holds no data: what it shows it asks for, with a key where one is needed.
http_response page_answer();

} // namespace troupe::actors::serve
