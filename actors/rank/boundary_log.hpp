#pragma once
// The rows that a rank sent to the next stage, kept for as long as their sequences live: when that
// stage loses its state, they are sent again and nobody before it computes anything. Rows lie in
// the pages of their sequence, as attention state does, so they need no free list and no end of
// their own. Owned by the rank's thread.

#include "compute/buffer.hpp"
#include "config/ids.hpp"
#include "config/result.hpp"
#include "config/topology.hpp"

#include <cstddef>
#include <span>

namespace troupe::actors {

/// The positions whose rows are kept once more of them were: one stretch, the last one that is
/// whole.
range join_rows(const range& kept, const range& more);

class boundary_log {
public:
  /// Bytes of one page of rows.
  static std::size_t page_bytes(std::size_t row_bytes);

  /// Room for `pages` pages of rows of `row_bytes` bytes. Error: out_of_memory.
  static result<boundary_log> make(std::size_t pages, std::size_t row_bytes);

  /// Keeps `rows` as positions [position, position + rows) of the sequence that owns `pages`.
  void keep(std::span<const page_id> pages, std::size_t position, std::span<const std::byte> rows);

  /// Reads what was kept for these positions.
  void read(std::span<const page_id> pages, std::size_t position, std::span<std::byte> rows) const;

  std::size_t bytes() const noexcept { return rows_.size(); }

private:
  template <class Visit>
  void each_run(std::span<const page_id> pages,
                std::size_t position,
                std::size_t bytes,
                Visit visit) const;

  compute::buffer rows_; ///< [pages][kv_page_tokens][row_bytes]
  std::size_t row_bytes_ = 0;
};

} // namespace troupe::actors
