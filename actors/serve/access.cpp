#include "actors/serve/access.hpp"

#include "config/address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace troupe::actors::serve {

namespace {

constexpr std::size_t shortest_key = 16;

// Takes as long for a wrong key as for the right one.
bool equal(std::string_view given, std::string_view key) {
  unsigned difference = given.size() == key.size() ? 0 : 1;
  for (std::size_t i = 0; i < key.size(); ++i)
    difference |= static_cast<unsigned char>(key[i])
                  ^ static_cast<unsigned char>(i < given.size() ? given[i] : '\0');
  return difference == 0;
}

// "chat.example" of "chat.example:8080", "::1" of "[::1]:8080".
std::string_view name_in(std::string_view host) {
  if (host.starts_with('['))
    return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

std::string_view host_in(std::string_view origin) {
  const auto mark = origin.find("://");
  return mark == std::string_view::npos ? std::string_view() : origin.substr(mark + 3);
}

} // namespace

result<access> access::load(const cluster_settings& settings) {
  const auto& serve = settings.serve;
  access made;
  made.origins_ = serve.origins;
  if (serve.keys_file.empty()) {
    made.only_local_names_ = is_loopback(serve.bind);
    return made;
  }
  const auto fail = [&](std::string what) {
    return error{errc::invalid_config,
                 settings.point_at("serve.keys_file",
                                   fmt::format("{}: {}", serve.keys_file.string(), what),
                                   "one key a line, such as: head -c 24 /dev/urandom | base64")};
  };
  std::ifstream in(serve.keys_file);
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.ends_with('\r'))
      line.pop_back();
    if (line.empty() || line.starts_with('#'))
      continue;
    if (line.size() < shortest_key)
      return fail(fmt::format("the key in line {} has {} characters; at least {} are needed",
                              number,
                              line.size(),
                              shortest_key));
    if (!std::all_of(line.begin(), line.end(), [](unsigned char c) { return c > 32 && c < 127; }))
      return fail(
        fmt::format("the key in line {} holds more than letters, digits and signs", number));
    made.keys_.push_back(line);
  }
  if (made.keys_.empty())
    return fail("it holds no key");
  return made;
}

bool access::allows(const std::string& origin) const {
  return std::any_of(origins_.begin(), origins_.end(), [&](const std::string& one) {
    return one == "*" || one == origin;
  });
}

std::string access::find_foreign_page(const http_request& asked) const {
  const auto name = name_in(asked.host);
  const bool listed = std::any_of(origins_.begin(), origins_.end(), [&](const std::string& one) {
    return one == "*" || name_in(host_in(one)) == name;
  });
  if (only_local_names_ && !name.empty() && !is_loopback(name) && !listed)
    return fmt::format("this server answers to names of its own host only, not to {}; a key "
                       "(serve.keys_file) or serve.origins would let others in",
                       name);
  if (asked.origin.empty() || allows(asked.origin) || host_in(asked.origin) == asked.host)
    return {};
  return fmt::format("pages of {} may not use this server (serve.origins)", asked.origin);
}

bool access::has_key(const http_request& asked) const {
  if (keys_.empty())
    return true;
  constexpr std::string_view scheme = "Bearer ";
  const std::string_view shown = asked.authorization;
  if (!shown.starts_with(scheme))
    return false;
  bool found = false;
  for (const auto& key : keys_) // all of them, for the same reason as in equal()
    found = equal(shown.substr(scheme.size()), key) || found;
  return found;
}

std::vector<http_header> access::headers_for(const http_request& asked) const {
  if (asked.origin.empty() || !allows(asked.origin))
    return {};
  return {{"Access-Control-Allow-Origin", asked.origin},
          {"Access-Control-Expose-Headers", "X-Request-Id, Retry-After"},
          {"Vary", "Origin"}};
}

} // namespace troupe::actors::serve
