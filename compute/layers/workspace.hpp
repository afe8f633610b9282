#pragma once
// Scratch memory of a pass: allocated for the largest pass so far and used again by the next.

#include "compute/buffer.hpp"
#include "compute/device.hpp"
#include "config/result.hpp"

#include <array>
#include <cstddef>

namespace troupe::compute {

/// Widths of the tensors that layers share, in elements a row.
struct workspace_widths {
  std::size_t hidden = 0;
  std::size_t queries = 0; ///< Of this rank: heads * head_dim.
  std::size_t keys = 0;    ///< Of this rank: kv_heads * head_dim.
  std::size_t ffn = 0;     ///< Of this rank.
};

/// Views stay valid until the next reserve() with more rows.
class workspace {
public:
  workspace(device& where, const workspace_widths& widths) : where_(&where), widths_(widths) {}

  /// Makes room for passes of `rows` rows. out_of_memory leaves what was there.
  result<void> reserve(std::size_t rows);

  tensor hidden(std::size_t rows) const { return view(0, rows); } ///< Between layers.

  tensor middle(std::size_t rows) const { return view(1, rows); } ///< Between attention and mlp.

  tensor normed(std::size_t rows) const { return view(2, rows); } ///< [rows, hidden].

  /// Queries, keys and values side by side, as one product leaves them.
  tensor projected(std::size_t rows) const { return view(3, rows); }

  tensor queries(std::size_t rows) const { return projected(rows).slice(0, widths_.queries); }

  tensor keys(std::size_t rows) const {
    return projected(rows).slice(widths_.queries, widths_.keys);
  }

  tensor values(std::size_t rows) const {
    return projected(rows).slice(widths_.queries + widths_.keys, widths_.keys);
  }

  tensor attended(std::size_t rows) const { return view(4, rows); } ///< As wide as queries.

  /// Gate and up side by side.
  tensor gated(std::size_t rows) const { return view(5, rows); }

  tensor gate(std::size_t rows) const { return gated(rows).slice(0, widths_.ffn); }

  tensor up(std::size_t rows) const { return gated(rows).slice(widths_.ffn, widths_.ffn); }

private:
  static constexpr std::size_t tensors = 6;

  std::array<std::size_t, tensors> widths() const;
  tensor view(std::size_t which, std::size_t rows) const;

  device* where_;
  workspace_widths widths_;
  std::size_t rows_ = 0;
  buffer memory_;
};

} // namespace troupe::compute
