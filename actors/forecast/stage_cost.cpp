#include "actors/forecast/stage_cost.hpp"

#include "compute/batch.hpp"
#include "compute/candidates.hpp"
#include "transport/frame.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::actors {

namespace {

double real(std::size_t count) {
  return static_cast<double>(count);
}

/// Elements of the weights that a product streams: of one layer, and of the head.
struct weights {
  double unit = 0;
  double head = 0;
};

weights weights_of(const compute::model_shape& shape, const rank_plan& rank) {
  const auto heads = real(rank.shard.heads.size() * shape.head_dim);
  const auto kv = real(rank.shard.kv_heads.size() * shape.head_dim);
  const auto hidden = real(shape.hidden);
  weights made;
  made.unit = hidden * (2 * heads + 2 * kv + 3 * real(rank.shard.ffn.size()));
  made.head = rank.record.owns_output ? hidden * real(rank.shard.vocabulary.size()) : 0;
  return made;
}

/// Bandwidth where so many bytes are read again and again, one thread.
double read_rate(const std::vector<read_point>& reads, double bytes) {
  if (bytes <= reads.front().bytes)
    return reads.front().bytes_per_s;
  for (std::size_t i = 1; i < reads.size(); ++i)
    if (bytes <= reads[i].bytes) {
      const auto& left = reads[i - 1];
      const auto& right = reads[i];
      const auto part = (bytes - left.bytes) / (right.bytes - left.bytes);
      return left.bytes_per_s + part * (right.bytes_per_s - left.bytes_per_s);
    }
  return reads.back().bytes_per_s;
}

/// Weights that fit a cache less than those of the measurement come slower, by this. All ranks of a
/// host share its cache: what one has read is gone when the others have read theirs.
double slower_by(const forecast_cluster& cluster, std::size_t on_host) {
  const auto& host = cluster.hosts.at(on_host);
  if (host.reads.empty())
    return 1;
  double bytes = 0;
  for (const auto& rank : cluster.plan.ranks)
    if (cluster.nodes.at(rank.node).host == on_host)
      bytes += real(rank.weight_bytes);
  const auto held = read_rate(host.reads, bytes);
  return std::max(1.0, read_rate(host.reads, host.measured_bytes) / held);
}

/// A product with `elements` weights that are read `slower` times as slowly as in the measurement.
/// A core does not quite wait and compute at the same time: the cubes of both times add up, which
/// is within a tenth of what products of 1 to 12 rows were measured to take.
double product_seconds(const std::vector<product_point>& points,
                       double elements,
                       double rows,
                       double slower) {
  const auto cube = [](double x) { return x * x * x; };
  const auto measured = element_seconds(points, rows);
  if (slower <= 1)
    return elements * measured;
  const auto reading = points.front().element_s;
  const auto computing = std::max(0.0, cube(measured) - cube(reading));
  return elements * std::cbrt(cube(reading * slower) + computing);
}

double attention_seconds(const forecast_cluster& cluster,
                         const host_speed& host,
                         const rank_plan& rank,
                         const step_load& load) {
  const auto dim = real(cluster.shape.head_dim);
  const auto position_bytes =
    real(rank.shard.kv_page_bytes) / real(compute::kv_page_tokens * rank.record.units.size());
  const auto bytes = load.read_positions * position_bytes;
  const auto work = load.scored_pairs * 4 * dim * real(rank.shard.heads.size());
  return std::max(bytes * host.state_byte_s, work * host.attention_op_s);
}

/// One rank chooses from whole rows; for candidates each looks through its own part.
double
logits_looked_at(const forecast_cluster& cluster, const rank_plan& rank, const step_load& load) {
  const auto one = cluster.plan.sizes.tensor == 1;
  const auto whole = one ? load.outputs : load.whole_rows;
  const auto parts = load.outputs - whole;
  const auto rows = real(rank.where.tensor == 0 ? whole : 0);
  return rows * real(cluster.shape.vocabulary) + real(parts * rank.shard.vocabulary.size());
}

wire_time
slower_of(const wire_time& one, distance far, const forecast_cluster& cluster, double bytes) {
  const auto& link = cluster.links.at(static_cast<std::size_t>(far));
  const wire_time other{link.latency_s, bytes / link.bytes_per_s};
  return other.seconds() > one.seconds() ? other : one;
}

} // namespace

std::string_view to_string(distance how_far) {
  switch (how_far) {
  case distance::process: return "process";
  case distance::host: return "host";
  case distance::rack: return "rack";
  case distance::across: return "across";
  }
  return "unknown";
}

distance forecast_cluster::between(std::size_t one_node, std::size_t other_node) const {
  if (one_node == other_node)
    return distance::process;
  const auto& one = nodes.at(one_node);
  const auto& other = nodes.at(other_node);
  if (one.host == other.host)
    return distance::host;
  return one.rack == other.rack ? distance::rack : distance::across;
}

std::span<const rank_plan> forecast_cluster::ranks_of(std::size_t stage) const {
  return std::span(plan.ranks).subspan(stage * plan.sizes.tensor, plan.sizes.tensor);
}

distance forecast_cluster::spread(std::size_t stage) const {
  auto widest = distance::process;
  const auto ranks = ranks_of(stage);
  for (const auto& rank : ranks)
    widest = std::max(widest, between(ranks.front().node, rank.node));
  return widest;
}

void add_rows(step_load& load, std::size_t position, std::size_t count) {
  load.rows += count;
  load.sequences += 1;
  load.read_positions += real(position + count);
  // Row i of them looks at position + i + 1 positions, its own included.
  load.scored_pairs += real(count) * real(position) + real(count) * real(count + 1) / 2;
}

void add_output(step_load& load, std::size_t candidates) {
  load.outputs += 1;
  load.whole_rows += candidates == 0 ? 1 : 0;
  load.candidates += candidates;
}

core_work rank_work(const forecast_cluster& cluster, const rank_plan& rank, const step_load& load) {
  const auto where = cluster.nodes.at(rank.node).host;
  const auto& host = cluster.hosts.at(where);
  const auto sizes = weights_of(cluster.shape, rank);
  const auto slower = slower_by(cluster, where);
  const auto units = real(rank.record.units.size());
  const auto products = [&](const std::vector<product_point>& points) {
    auto all = units * product_seconds(points, sizes.unit, real(load.rows), slower);
    if (sizes.head > 0 && load.outputs > 0)
      all += product_seconds(points, sizes.head, real(load.outputs), slower);
    return all;
  };
  const auto one = products(host.products.one);
  const auto gain = std::max(1.0, one / products(host.products.all));
  const auto state = units * attention_seconds(cluster, host, rank, load);
  auto alone = host.begin_s + units * host.unit_s;
  if (rank.record.owns_output)
    alone += logits_looked_at(cluster, rank, load) * host.logit_s;
  core_work made;
  made.one_s = alone + one + state;
  // What one thread does alone takes its time on all cores as well.
  const auto together = alone + units * (host.unit_all_s - host.unit_s) + (one + state) / gain;
  made.gain = std::max(1.0, made.one_s / std::max(together, 1e-12));
  return made;
}

sum_cost sum_of(double bytes, std::size_t members, const link_speed& link) {
  if (members <= 1)
    return {};
  const auto others = real(members - 1);
  const sum_cost direct{link.seconds(others * bytes), others * bytes};
  const auto part = bytes / real(members);
  const sum_cost in_parts{2 * link.seconds(others * part), 2 * others * part};
  return direct.s <= in_parts.s ? direct : in_parts;
}

sum_cost group_cost(const forecast_cluster& cluster, std::size_t stage, const step_load& load) {
  const auto members = cluster.plan.sizes.tensor;
  if (members <= 1)
    return {};
  const auto& link = cluster.reducing.at(static_cast<std::size_t>(cluster.spread(stage)));
  const auto& first = cluster.ranks_of(stage).front().record;
  const auto row = real(cluster.shape.hidden) * sizeof(float);
  const auto sums = real(2 * first.units.size() + (first.owns_input ? 1 : 0));
  auto all = sum_of(row * real(load.rows), members, link);
  all.s *= sums;
  all.bytes_sent *= sums;
  if (!first.owns_output)
    return all;
  const auto gather = [&](double part) {
    all.s += link.seconds(real(members - 1) * part);
    all.bytes_sent += real(members - 1) * part;
  };
  if (load.candidates > 0)
    gather(real(load.candidates * compute::candidate_bytes));
  if (load.whole_rows > 0)
    gather(real(cluster.shape.vocabulary * load.whole_rows) * sizeof(float) / real(members));
  return all;
}

double boundary_bytes(const forecast_cluster& cluster, const step_load& load) {
  return real(cluster.plan.boundary_row_bytes * load.rows) + real(transport::wire_header_bytes);
}

wire_time boundary_time(const forecast_cluster& cluster, std::size_t stage, const step_load& load) {
  const auto from = cluster.ranks_of(stage);
  const auto to = cluster.ranks_of(stage + 1);
  wire_time slowest;
  for (std::size_t t = 0; t < from.size(); ++t)
    slowest = slower_of(
      slowest, cluster.between(from[t].node, to[t].node), cluster, boundary_bytes(cluster, load));
  return slowest;
}

wire_time message_time(const forecast_cluster& cluster, std::size_t stage, const step_load& load) {
  constexpr double entry_bytes = 64; // of a step's plan or output, and a token a row
  const auto bytes = entry_bytes * real(load.sequences) + sizeof(token_id) * real(load.rows);
  wire_time slowest;
  for (const auto& rank : cluster.ranks_of(stage))
    slowest = slower_of(slowest, cluster.between(cluster.head, rank.node), cluster, bytes);
  return slowest;
}

} // namespace troupe::actors
