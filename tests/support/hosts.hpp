#pragma once
// A cluster on several hosts (tests/support/lan.hpp), each with files of its own.

#include "tests/support/cluster.hpp"
#include "tests/support/lan.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::tests {

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
