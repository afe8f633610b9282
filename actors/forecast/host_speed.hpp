#pragma once
// How fast a host computes, as a few figures: what a forecast knows of it. They come from a
// measurement (actors/forecast/calibration.hpp) or from a description (described_host below). Plain
// values and pure functions.

#include "config/dtype.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace troupe::actors {

/// What one element of a weight costs in a product with so many rows.
struct product_point {
  double rows = 0;
  double element_s = 0;

  friend bool operator==(const product_point&, const product_point&) = default;
};

/// Read bandwidth of one thread where so many bytes are read again and again.
struct read_point {
  double bytes = 0;
  double bytes_per_s = 0;

  friend bool operator==(const read_point&, const read_point&) = default;
};

/// Products of one thread, and of all cores together, ascending by rows; at least one point each.
/// In between, seconds are linear: so two slopes are exactly max(bytes / bandwidth, work / peak).
struct product_speed {
  std::vector<product_point> one;
  std::vector<product_point> all;

  friend bool operator==(const product_speed&, const product_speed&) = default;
};

/// Seconds of an element at so many rows; beyond the last point in proportion to the rows.
double element_seconds(const std::vector<product_point>& points, double rows);

/// How fast a host is with weights that are held as one type.
struct host_speed {
  std::string name; ///< "measured here", or what a scenario calls it.
  std::size_t cores = 1;
  product_speed products;
  /// Ascending by bytes; empty: products cost the same whatever the size of the weights.
  std::vector<read_point> reads;
  double measured_bytes = 0; ///< Weights that `products` was measured with; with `reads` only.

  double unit_s = 0;         ///< A layer beside its products and its attention, one thread.
  double unit_all_s = 0;     ///< The same on all cores: threads have to meet.
  double state_byte_s = 0;   ///< A byte of keys and values read, one thread.
  double attention_op_s = 0; ///< An operation on scores and values, one thread.
  double logit_s = 0;        ///< A logit looked at when a token is chosen.
  double begin_s = 0;        ///< A pass beside its layers, on every stage.
  double awake_hop_s = 0;    ///< A message to a thread that spins.
  double asleep_hop_s = 0;   ///< A message to a thread that sleeps.

  friend bool operator==(const host_speed&, const host_speed&) = default;
};

/// The figures of a host that is only described. `read_bytes_per_s` and `flops_per_s` are those of
/// all cores together, and what kernels reach of them is said by the two factors.
/// `threads_to_read`: so many cores take all of the bandwidth.
struct described_host {
  std::string name;
  std::size_t cores = 1;
  double read_bytes_per_s = 0;
  double flops_per_s = 0;
  double read_reached = 0.85;
  double flops_reached = 0.75;
  double hop_s = 20e-6;
  double unit_s = 20e-6;
};

/// `element_bytes`: of a weight as held, 2 for bf16.
host_speed speed_of(const described_host& host, double element_bytes);

/// Bytes of an element of a wide matrix that is held as `type`: 34 / 32 for int8.
double element_bytes(dtype type);

/// Bytes of weights that one row streams a second on all cores, from memory: a stage of a large
/// model is as fast as that, so nodes of this host weigh that much against those of others.
double weights_per_s(const host_speed& host, dtype hold);

/// Work of one rank: seconds of one thread, and how many times as fast all cores are.
struct core_work {
  double one_s = 0;
  double gain = 1;

  friend bool operator==(const core_work&, const core_work&) = default;
};

/// How many times as fast as one thread so many are: 1 for one, `gain` for all cores and beyond,
/// linear in between.
double speed_up(double gain, std::size_t cores, double threads);

/// Seconds of `work` on `threads` threads while `busy` threads work on the host, these included:
/// more threads than cores share them, and all share the bandwidth that `gain` tells of.
double seconds(const core_work& work, std::size_t cores, std::size_t threads, std::size_t busy);

} // namespace troupe::actors
