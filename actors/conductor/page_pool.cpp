#include "actors/conductor/page_pool.hpp"

#include "config/check.hpp"

namespace troupe::actors {

page_pool::page_pool(std::size_t pages) : page_pool(pages, {}) {}

page_pool::page_pool(std::size_t pages, const std::set<page_id>& used) : total_(pages) {
  free_.reserve(pages);
  for (std::size_t i = pages; i-- > 0;)
    if (!used.contains(static_cast<page_id>(i)))
      free_.push_back(static_cast<page_id>(i));
}

std::optional<std::vector<page_id>> page_pool::take(std::size_t count) {
  if (count > free_.size())
    return std::nullopt;
  std::vector<page_id> taken(free_.rbegin(), free_.rbegin() + static_cast<std::ptrdiff_t>(count));
  free_.resize(free_.size() - count);
  return taken;
}

void page_pool::give_back(const std::vector<page_id>& pages) {
  check(free_.size() + pages.size() <= total_, "a page is given back once");
  for (std::size_t i = pages.size(); i-- > 0;)
    free_.push_back(pages[i]);
}

} // namespace troupe::actors
