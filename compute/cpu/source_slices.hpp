#pragma once
// The sources of a weight in slices of rows, shared out among the threads that pack them, and shown
// to the watchers of the sources on the way.

#include "compute/device.hpp"
#include "config/topology.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace troupe::compute::cpu {

/// Every thread takes a slice, packs it and says so, until there is none. Slices pass the watchers
/// in order; the thread that finds nobody at it shows all that have been taken, so that nobody
/// waits for a thread that lost its core, unless it is many slices behind.
class source_slices {
public:
  /// `rows` of the weight, all sources together, by slice_rows. Sources outlive it.
  source_slices(std::span<const weight_source> sources,
                std::size_t rows,
                std::size_t slice_rows,
                std::size_t threads);

  struct slice {
    std::size_t index;
    range rows; ///< Of the weight.
  };

  std::optional<slice> take();

  /// Its rows go when their watchers have seen them, which is so for all when all threads have been
  /// refused another slice.
  void packed(const slice& done);

private:
  /// What has happened to a slice; it goes after all of it.
  enum mark : std::uint8_t { expected = 1, passed = 2, was_packed = 4, all = 7 };

  slice at(std::size_t index) const;

  /// f(watcher, its rows) for each source that is watched and has some of these rows.
  template <class F>
  void for_watched(const range& rows, F f) const;

  void add(mark what, const slice& to);
  bool may_pass() const;
  void pass_taken();

  std::span<const weight_source> sources_;
  std::size_t rows_;
  std::size_t slice_rows_;
  std::size_t most_ahead_; ///< Slices that may be taken and not have passed.
  bool watched_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::size_t> passing_ = 0; ///< The slice that passes next.
  std::atomic<bool> busy_ = false;       ///< Somebody shows slices.
  std::vector<std::atomic<std::uint8_t>> marks_;
};

} // namespace troupe::compute::cpu
