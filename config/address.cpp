#include "config/address.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cctype>
#include <cstring>
#include <optional>

namespace troupe {

namespace {

using ipv6_bytes = std::array<unsigned char, 16>;

// Every address as IPv6, IPv4 mapped (::ffff:a.b.c.d); nullopt for a name.
std::optional<ipv6_bytes> parse(std::string_view address) {
  const std::string text{address};
  ipv6_bytes bytes{};
  if (inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1)
    return bytes;
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) != 1)
    return std::nullopt;
  bytes[10] = bytes[11] = 0xFF;
  std::memcpy(bytes.data() + 12, &v4, 4);
  return bytes;
}

bool is_mapped(const ipv6_bytes& bytes) {
  return std::all_of(bytes.begin(), bytes.begin() + 10, [](auto byte) { return byte == 0; })
         && bytes[10] == 0xFF && bytes[11] == 0xFF;
}

std::string lower(std::string_view text) {
  std::string out{text};
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return out;
}

bool is_label(std::string_view label) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
  return !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-'
         && std::all_of(label.begin(), label.end(), fits);
}

} // namespace

bool is_loopback(std::string_view address) {
  if (lower(address) == "localhost")
    return true;
  const auto bytes = parse(address);
  if (!bytes)
    return false;
  if (is_mapped(*bytes))
    return (*bytes)[12] == 127;
  ipv6_bytes one{};
  one[15] = 1;
  return *bytes == one;
}

bool is_unspecified(std::string_view address) {
  const auto bytes = parse(address);
  if (!bytes)
    return false;
  const auto begin = bytes->begin() + (is_mapped(*bytes) ? 12 : 0);
  return std::all_of(begin, bytes->end(), [](auto byte) { return byte == 0; });
}

std::string canonical_address(std::string_view address) {
  const auto name = lower(address);
  const auto bytes = parse(name == "localhost" ? std::string_view{"127.0.0.1"} : address);
  if (!bytes)
    return name;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (is_mapped(*bytes))
    inet_ntop(AF_INET, bytes->data() + 12, text.data(), text.size());
  else
    inet_ntop(AF_INET6, bytes->data(), text.data(), text.size());
  return text.data();
}

std::string address_mistake(std::string_view address) {
  if (address.empty())
    return "the address is empty";
  if (parse(address))
    return {};
  if (address.find(':') != std::string_view::npos)
    return "not an IPv6 address; a port has a key of its own";
  const auto digit_or_dot = [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; };
  if (std::all_of(address.begin(), address.end(), digit_or_dot))
    return "not an IPv4 address; four numbers from 0 to 255";
  if (address.size() > 253)
    return "a host name has at most 253 characters";
  for (auto rest = address; !rest.empty();) {
    const auto dot = rest.find('.');
    if (!is_label(rest.substr(0, dot)))
      return "neither an address nor a host name";
    rest = dot == std::string_view::npos ? std::string_view{} : rest.substr(dot + 1);
  }
  return {};
}

} // namespace troupe
