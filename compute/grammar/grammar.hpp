#pragma once
// A language of bytes: rules that read bytes and call each other.

#include <cstdint>
#include <vector>

namespace troupe::compute {

/// A network of nodes. A rule is a node where it starts; it is over at any node that `ends`. Edges
/// read one byte of a range, or nothing, or all that another rule reads. Immutable once built.
struct grammar {
  using node_id = std::uint32_t;

  struct byte_edge {
    std::uint8_t low, high;
    node_id to;
  };

  struct call_edge {
    node_id rule; ///< Where the called rule starts.
    node_id to;   ///< Where the caller goes on.
  };

  struct node {
    std::vector<byte_edge> bytes;
    std::vector<call_edge> calls;
    std::vector<node_id> jumps;
    bool ends = false;
  };

  std::vector<node> nodes;
  node_id start = 0;
};

} // namespace troupe::compute
