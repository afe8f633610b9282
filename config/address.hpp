#pragma once
// Addresses as people write them: IPv4, IPv6 or a host name, without a port. Nothing is looked up.

#include <string>
#include <string_view>

namespace troupe {

/// True for 127.0.0.0/8 and ::1, also mapped into IPv6, and for "localhost".
bool is_loopback(std::string_view address);

/// True for 0.0.0.0 and ::, every interface of a host: one can listen there but not be reached.
bool is_unspecified(std::string_view address);

/// One spelling for each address: "0:0:0:0:0:0:0:1" is "::1", "LocalHost" is "127.0.0.1". Host
/// names in lower case.
std::string canonical_address(std::string_view address);

/// Empty when `address` is an IPv4 or IPv6 address or can be a host name; else what is wrong.
std::string address_mistake(std::string_view address);

} // namespace troupe
