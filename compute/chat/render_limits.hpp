#pragma once
// How much a chat template may do.

#include <cstddef>

namespace troupe::compute::chat {

/// What a rendering may use. A template of a stranger can loop and double texts as it likes: it
/// ends with an error within about a second.
struct render_limits {
  std::size_t work = std::size_t{64} << 20; ///< Bytes written, and 16 a node.
  std::size_t text_bytes = std::size_t{16} << 20;
  std::size_t depth = 300; ///< Nodes and macros inside of each other.
};

} // namespace troupe::compute::chat
