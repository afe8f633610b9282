#include "actors/forecast/host_speed.hpp"

#include "config/check.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

double between(double x, double x0, double y0, double x1, double y1) {
  return x1 == x0 ? y0 : y0 + (x - x0) / (x1 - x0) * (y1 - y0);
}

/// max(read, rows * work) as points: flat up to the ridge, then in proportion.
std::vector<product_point> roofline(double read_s, double work_s) {
  const auto ridge = std::max(1.0, read_s / work_s);
  return {{1, std::max(read_s, work_s)}, {ridge, ridge * work_s}};
}

} // namespace

double element_seconds(const std::vector<product_point>& points, double rows) {
  check(!points.empty(), "a host has the speed of a product");
  const auto& last = points.back();
  if (rows >= last.rows)
    return last.element_s * rows / last.rows;
  if (rows <= points.front().rows)
    return points.front().element_s;
  const auto right = std::find_if(
    points.begin(), points.end(), [&](const auto& point) { return point.rows > rows; });
  const auto left = right - 1;
  return between(rows, left->rows, left->element_s, right->rows, right->element_s);
}

double element_bytes(dtype type) {
  return static_cast<double>(held_bytes(type, 1, 1024)) / 1024;
}

double weights_per_s(const host_speed& host, dtype hold) {
  const auto measured = element_bytes(hold) / host.products.all.front().element_s;
  if (host.reads.empty())
    return measured;
  // What was measured may have come from a cache.
  return measured * std::min(1.0, host.reads.back().bytes_per_s / host.reads.front().bytes_per_s);
}

host_speed speed_of(const described_host& host, double element_bytes) {
  // Few cores take all of the bandwidth of a host with many: a quarter of them here.
  const auto cores = static_cast<double>(host.cores);
  const auto read = host.read_bytes_per_s * host.read_reached;
  const auto flops = host.flops_per_s * host.flops_reached;
  const auto one_read = read / std::max(1.0, cores / 4);
  host_speed made;
  made.name = host.name;
  made.cores = host.cores;
  made.products.one = roofline(element_bytes / one_read, 2 / (flops / cores));
  made.products.all = roofline(element_bytes / read, 2 / flops);
  made.unit_s = made.unit_all_s = host.unit_s;
  made.state_byte_s = 1 / one_read;
  made.attention_op_s = 1 / (flops / cores);
  made.logit_s = 1e-9;
  made.begin_s = host.unit_s;
  made.awake_hop_s = made.asleep_hop_s = host.hop_s;
  return made;
}

double speed_up(double gain, std::size_t cores, double threads) {
  if (cores <= 1 || threads <= 1)
    return 1;
  const auto most = static_cast<double>(cores);
  return between(std::min(threads, most), 1, 1, most, gain);
}

double seconds(const core_work& work, std::size_t cores, std::size_t threads, std::size_t busy) {
  const auto own = static_cast<double>(threads);
  const auto together = static_cast<double>(std::max(busy, threads));
  return work.one_s * together / (speed_up(work.gain, cores, together) * own);
}

} // namespace troupe::actors
