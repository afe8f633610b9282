#include "actors/cli/join.hpp"

#include "actors/cli/command.hpp"
#include "actors/node/guest.hpp"
#include "config/log.hpp"

#include <fmt/format.h>

#include <charconv>

namespace troupe::cli {

namespace {

/// "host:port", "[::1]:port".
result<actors::guest_wish> read_head(const std::string& text) {
  const error wrong{errc::invalid_config,
                    fmt::format("\"{}\" is no address with a port; the head's look like "
                                "192.168.1.10:7600 (its node's `advertise` and `port`)",
                                text)};
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return wrong;
  actors::guest_wish wish;
  wish.host = text.substr(0, colon);
  if (wish.host.front() == '[' && wish.host.back() == ']')
    wish.host = wish.host.substr(1, wish.host.size() - 2);
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + colon + 1, end, wish.port);
  if (read.ec != std::errc{} || read.ptr != end || wish.port == 0 || wish.host.empty())
    return wrong;
  return wish;
}

} // namespace

int run_join_command(const join_options& options) {
  auto wish = read_head(options.head);
  if (!wish)
    return fail(wish.error());
  wish->name = options.name;
  wish->model = options.model;
  wish->overrides = options.overrides;
  auto made = actors::make_guest(*wish);
  if (!made)
    return fail(made.error());
  log::start(made->settings.cluster.log_level, "node " + options.name);
  if (auto ended = actors::run_node(*made); !ended)
    return fail(ended.error());
  return 0;
}

} // namespace troupe::cli
