#pragma once
// Pieces of a grammar, put together.

#include "compute/grammar/grammar.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::compute {

/// Adds nodes and edges. A piece is built between two nodes that the caller has; after too many
/// nodes nothing is added any more, and full() says so.
class grammar_builder {
public:
  using node_id = grammar::node_id;

  static constexpr std::size_t most_nodes = 200'000;

  node_id node();

  bool full() const noexcept { return made_.nodes.size() >= most_nodes; }

  void byte(node_id from, char byte, node_id to);
  void bytes(node_id from, std::uint8_t low, std::uint8_t high, node_id to);
  void jump(node_id from, node_id to);
  void call(node_id from, node_id rule, node_id to);
  void text(node_id from, std::string_view bytes, node_id to);
  /// Any of them; what they begin with in common is there once.
  void texts(node_id from, std::vector<std::string> all, node_id to);

  /// The piece may end, as a rule, at this node.
  void end(node_id at) { made_.nodes[at].ends = true; }

  /// Whether some rule can call itself before it has read a byte, which no text would ever leave.
  bool has_left_recursion() const;

  /// Removes what no finite text gets out of. False: `start` is such a place itself.
  bool prune(node_id start);

  grammar take(node_id start);

private:
  grammar made_;
};

} // namespace troupe::compute
