#pragma once
// Pages of attention state, handed out by the conductor: the same page id holds the same positions
// on every rank, so no rank ever consults a free list of its own.

#include "config/ids.hpp"

#include <optional>
#include <set>
#include <vector>

namespace troupe::actors {

class page_pool {
public:
  explicit page_pool(std::size_t pages);

  /// Of which these are handed out already.
  page_pool(std::size_t pages, const std::set<page_id>& used);

  std::size_t total() const noexcept { return total_; }

  std::size_t available() const noexcept { return free_.size(); }

  std::size_t used() const noexcept { return total_ - free_.size(); }

  /// `count` pages, or nothing when that many are not free.
  std::optional<std::vector<page_id>> take(std::size_t count);

  void give_back(const std::vector<page_id>& pages);

private:
  std::size_t total_ = 0;
  std::vector<page_id> free_; ///< The next one is at the back; lowest ids go first.
};

} // namespace troupe::actors
