#pragma once
// Several hosts on this one: network namespaces of their own, joined by two switches, of which a
// cluster is to use the first. Processes hold the namespaces; they end with the test, however it
// ends, and nothing remains. The test program itself moves into a namespace of its own, where the
// switches are, so that nothing reaches the network of the machine. Hosts share the kernel, and
// thus memory: clusters say transports = "tcp,self".

#include "tests/support/outcome.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::tests {

/// Why this system does not let us make hosts; empty when it does. The first call moves the program
/// into its own namespace.
const std::string& why_no_hosts();

/// Hosts 1 to `count` on two networks; the test program is on that of the cluster as well. Owned by
/// one test, and one at a time.
class lan {
public:
  explicit lan(std::size_t count);
  ~lan();
  lan(const lan&) = delete;
  lan& operator=(const lan&) = delete;

  /// On the network of the cluster, interface "net0".
  static std::string address(std::size_t host);
  /// What the hosts call that address.
  static std::string name(std::size_t host);
  /// On the network that is none of the cluster's business, interface "net1".
  static std::string other_address(std::size_t host);

  /// The command line that runs another one on that host; command[0] is searched in PATH.
  std::vector<std::string> inside(std::size_t host, std::vector<std::string> command) const;

  /// Standard error goes with standard output.
  test::process start(std::size_t host,
                      std::vector<std::string> command,
                      const std::vector<std::string>& environment = {}) const;

  outcome run(std::size_t host,
              std::vector<std::string> command,
              const std::vector<std::string>& environment = {},
              int seconds = 30) const;

  /// `ip <arguments>` on that host; ends the test when it fails.
  void ip(std::size_t host, std::vector<std::string> arguments) const;

  /// Local addresses of all TCP sockets of that host, listening, connected or closed a moment ago.
  std::vector<std::string> tcp_addresses(std::size_t host) const;

  /// Bytes that left that host through an interface so far.
  std::uint64_t bytes_sent(std::size_t host, const std::string& interface) const;

private:
  temporary_folder names_; ///< /etc/hosts of all of them.
  std::vector<test::process> holders_;
};

} // namespace troupe::tests
