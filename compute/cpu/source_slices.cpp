#include "compute/cpu/source_slices.hpp"

#include <algorithm>

namespace troupe::compute::cpu {

source_slices::source_slices(std::span<const weight_source> sources,
                             std::size_t rows,
                             std::size_t slice_rows,
                             std::size_t threads)
  : sources_(sources), rows_(rows), slice_rows_(slice_rows), most_ahead_(2 * threads),
    watched_(std::any_of(sources.begin(),
                         sources.end(),
                         [](const auto& source) { return source.watcher != nullptr; })),
    marks_((rows + slice_rows - 1) / slice_rows) {}

source_slices::slice source_slices::at(std::size_t index) const {
  return {index, {index * slice_rows_, std::min((index + 1) * slice_rows_, rows_)}};
}

template <class F>
void source_slices::for_watched(const range& rows, F f) const {
  std::size_t first = 0;
  for (const auto& source : sources_) {
    const auto begin = std::clamp(rows.begin, first, first + source.rows);
    const auto end = std::clamp(rows.end, first, first + source.rows);
    if (source.watcher != nullptr && begin < end)
      f(*source.watcher, range{begin - first, end - first});
    first += source.rows;
  }
}

std::optional<source_slices::slice> source_slices::take() {
  const auto index = next_++;
  if (index >= marks_.size())
    return std::nullopt;
  const auto taken = at(index);
  if (!watched_)
    return taken;
  for_watched(taken.rows, [](row_watcher& watcher, const range& rows) { watcher.expect(rows); });
  add(expected, taken);
  pass_taken();
  for (auto now = passing_.load(); index >= now + most_ahead_; now = passing_.load())
    passing_.wait(now);
  return taken;
}

void source_slices::packed(const slice& done) {
  if (watched_)
    add(was_packed, done);
}

void source_slices::add(mark what, const slice& to) {
  if ((marks_[to.index].fetch_or(what) | what) == all)
    for_watched(to.rows, [](row_watcher& watcher, const range& rows) { watcher.release(rows); });
}

bool source_slices::may_pass() const {
  const auto index = passing_.load();
  return index < marks_.size() && (marks_[index].load() & expected) != 0;
}

void source_slices::pass_taken() {
  // Looking again after letting go: a slice whose taker found us busy is ours.
  while (may_pass() && !busy_.exchange(true)) {
    while (may_pass()) {
      const auto next = at(passing_.load());
      for_watched(next.rows, [](row_watcher& watcher, const range& rows) { watcher.pass(rows); });
      passing_.store(next.index + 1);
      passing_.notify_all();
      add(passed, next);
    }
    busy_.store(false);
  }
}

} // namespace troupe::compute::cpu
