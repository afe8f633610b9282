#pragma once
// Several hosts on this one: network namespaces of their own, joined by two switches, of which a
// cluster is to use the first. Processes hold the namespaces; they end with the test, however it
// ends, and nothing remains. The test program itself moves into an empty namespace, so that nothing
// reaches the network of the machine. Hosts share the kernel, and thus memory: clusters say
// transports = "tcp,self".

#include "tests/support/cluster.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::tests {

/// Why this system does not let us make hosts; empty when it does. The first call moves the program
/// into its own namespace.
const std::string& why_no_hosts();

/// Hosts 1 to `count` on two networks. Owned by one test.
class lan {
public:
  explicit lan(std::size_t count);

  /// On the network of the cluster, interface "net0".
  static std::string address(std::size_t host);
  /// What the hosts call that address.
  static std::string name(std::size_t host);
  /// On the network that is none of the cluster's business, interface "net1".
  static std::string other_address(std::size_t host);

  /// command[0] is searched in PATH. Standard error goes with standard output.
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
  std::vector<std::string> inside(std::size_t host, std::vector<std::string> command) const;

  temporary_folder names_; ///< /etc/hosts of all of them.
  std::vector<test::process> holders_;
};

/// What `troupe status --json` says about a rank.
struct seen_rank {
  std::string node;
  std::string links;
  std::size_t first_unit = 0;
  std::size_t last_unit = 0; ///< Behind the last.
  std::uint64_t weight_bytes = 0;
  std::uint64_t payload_bytes_sent = 0;
};

struct lab_shape {
  std::filesystem::path model;
  std::size_t pipeline = 1;
  std::size_t tensor = 1;
  std::vector<std::size_t> ranks{1, 1, 1}; ///< Of each host.
  std::size_t everywhere = 0; ///< The host that binds to 0.0.0.0 and advertises its address.
  std::string more;           ///< TOML that follows.
  bool secured = true;
  bool by_name = false; ///< The file has names in place of addresses.
  std::string node_more = "transports = \"tcp,self\"";
};

/// A cluster of hosts "h1" (the head), "h2" ... and one more that takes no part. Each has its own
/// folder with the cluster file, the secret and the model.
class host_lab {
public:
  explicit host_lab(const lab_shape& shape);

  const lan& network() const { return network_; }

  const std::filesystem::path& folder(std::size_t host) const {
    return folders_.at(host - 1)->path();
  }

  std::filesystem::path model(std::size_t host) const { return folder(host) / "model"; }

  /// What that host takes for the secret of the cluster.
  void set_secret(std::size_t host, const std::string& secret) const;

  /// `troupe node FILE --name h<host>` there.
  test::process start_node(std::size_t host, const std::vector<std::string>& more = {}) const;

  /// `troupe <arguments>` there; "FILE" stands for that host's cluster file.
  test::process start(std::size_t host, const std::vector<std::string>& arguments) const;
  outcome run(std::size_t host, const std::vector<std::string>& arguments, int seconds = 30) const;

  /// Starts a node on each host of the cluster and waits until they serve together.
  std::vector<test::process> start_all() const;

  /// Asks the head's status until it mentions `words`.
  bool status_becomes(const std::string& words, std::chrono::seconds patience) const;

  /// By rank, as the head sees them.
  std::vector<seen_rank> ranks() const;

  /// `troupe generate FILE --json --digests` from that host.
  std::vector<told_answer> generate(std::size_t host,
                                    const std::vector<std::string>& prompt_lines) const;

  /// Takes away the weight files of that host's model that hold none of the wanted tensors; how
  /// many.
  std::size_t keep_files(std::size_t host, const std::function<bool(const std::string&)>& wanted);

private:
  std::vector<std::string> troupe(std::size_t host,
                                  const std::vector<std::string>& arguments) const;
  std::vector<std::string> environment(std::size_t host) const;

  std::size_t nodes_;
  lan network_;
  std::vector<std::unique_ptr<temporary_folder>> folders_;
};

} // namespace troupe::tests
