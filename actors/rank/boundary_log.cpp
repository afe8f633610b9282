#include "actors/rank/boundary_log.hpp"

#include "compute/batch.hpp"
#include "config/check.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::actors {

using compute::kv_page_tokens;

range join_rows(const range& kept, const range& more) {
  if (kept.begin <= more.begin && more.begin <= kept.end)
    return {kept.begin, std::max(kept.end, more.end)};
  return more;
}

std::size_t boundary_log::page_bytes(std::size_t row_bytes) {
  return kv_page_tokens * row_bytes;
}

result<boundary_log> boundary_log::make(std::size_t pages, std::size_t row_bytes) {
  auto rows = compute::buffer::allocate(pages * page_bytes(row_bytes));
  if (!rows)
    return with_context("rows that were sent to the next stage", rows.error());
  boundary_log made;
  made.rows_ = std::move(*rows);
  made.row_bytes_ = row_bytes;
  return made;
}

/// Calls visit(kept, offset, bytes) for each stretch of the positions that lies in one page.
template <class Visit>
void boundary_log::each_run(std::span<const page_id> pages,
                            std::size_t position,
                            std::size_t bytes,
                            Visit visit) const {
  const auto end = position + bytes / row_bytes_;
  check(bytes % row_bytes_ == 0 && end <= pages.size() * kv_page_tokens,
        "rows lie in the pages of their sequence");
  for (std::size_t offset = 0; position < end;) {
    const auto row = position % kv_page_tokens;
    const auto count = std::min(kv_page_tokens - row, end - position);
    const auto page = std::size_t{number(pages[position / kv_page_tokens])};
    visit(rows_.data() + (page * kv_page_tokens + row) * row_bytes_, offset, count * row_bytes_);
    offset += count * row_bytes_;
    position += count;
  }
}

void boundary_log::keep(std::span<const page_id> pages,
                        std::size_t position,
                        std::span<const std::byte> rows) {
  each_run(
    pages, position, rows.size(), [&](std::byte* kept, std::size_t offset, std::size_t bytes) {
      std::memcpy(kept, rows.data() + offset, bytes);
    });
}

void boundary_log::read(std::span<const page_id> pages,
                        std::size_t position,
                        std::span<std::byte> rows) const {
  each_run(
    pages, position, rows.size(), [&](std::byte* kept, std::size_t offset, std::size_t bytes) {
      std::memcpy(rows.data() + offset, kept, bytes);
    });
}

} // namespace troupe::actors
