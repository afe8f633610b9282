#include "actors/forecast/cluster_here.hpp"

#include "actors/host/host_network.hpp"

#include <algorithm>
#include <map>

namespace troupe::actors {

namespace {

/// Nodes of one host have one name here: their address, or this host's.
std::string host_name(const node_settings& node) {
  return belongs_to_this_host(node.advertise) ? std::string("here") : node.advertise;
}

/// Whether ranks of this host spin while they wait: where each of them and the conductor have a
/// core (actors/node/node.cpp).
bool spins(const cluster_settings& settings, std::size_t cores) {
  std::size_t threads = 1;
  for (const auto& node : settings.nodes)
    if (belongs_to_this_host(node.advertise))
      threads += node.ranks * std::max<std::size_t>(1, node.threads);
  return threads <= cores;
}

host_speed scaled(host_speed speed, double weight) {
  for (auto* points : {&speed.products.one, &speed.products.all})
    for (auto& point : *points)
      point.element_s /= weight;
  for (auto* figure :
       {&speed.unit_s, &speed.unit_all_s, &speed.state_byte_s, &speed.attention_op_s})
    *figure /= weight;
  return speed;
}

} // namespace

forecast_cluster cluster_like_this_host(const cluster_settings& settings,
                                        const cluster_plan& plan,
                                        const compute::model_shape& shape,
                                        const calibration& figures) {
  forecast_cluster made;
  made.plan = plan;
  made.shape = shape;
  made.head = settings.head_index();
  made.prefill_chunk = settings.schedule.prefill_chunk;
  made.micro_batches = settings.schedule.micro_batches;
  std::map<std::string, std::size_t> hosts;
  std::vector<std::size_t> ranks;
  for (const auto& node : settings.nodes) {
    const auto [place, is_new] = hosts.emplace(host_name(node), made.hosts.size());
    if (is_new) {
      made.hosts.push_back(scaled(figures.speed, node.weight));
      ranks.push_back(0);
    }
    ranks[place->second] += node.ranks;
    made.nodes.push_back({place->second, 0, node.threads});
  }
  for (auto& node : made.nodes)
    if (node.threads == 0)
      node.threads =
        std::max<std::size_t>(1, figures.speed.cores / std::max<std::size_t>(1, ranks[node.host]));
  const auto hop =
    spins(settings, figures.speed.cores) ? figures.speed.awake_hop_s : figures.speed.asleep_hop_s;
  const auto near = link_speed{hop + handling_s, 5e9};
  made.links = {near, near, assumed_network, assumed_network};
  made.reducing = {figures.reducing, figures.reducing, assumed_network, assumed_network};
  return made;
}

rates rates_of(const simulated_run& run, std::size_t tensor, const offered_load& load) {
  rates made;
  made.streams = load.streams;
  made.prompt = load.prompt;
  made.answer = load.answer;
  made.answer_tokens_per_s = run.decode_rate();
  made.first_token_s = run.mean_first_token_s();
  if (const auto filled = run.filled_s(load.streams); filled > 0)
    made.prompt_tokens_per_s = static_cast<double>(load.prompt * load.streams) / filled;
  made.bubble = run.bubble();
  double bytes = 0;
  for (const auto& stage : run.stages)
    bytes += stage.boundary_bytes + stage.sum_bytes * static_cast<double>(tensor);
  made.bytes_per_token = bytes / static_cast<double>(run.prompt_tokens + run.answer_tokens);
  return made;
}

result<forecast> forecast_rates(const forecast_cluster& cluster) {
  offered_load load;
  load.prompt = std::clamp<std::size_t>(cluster.plan.context / 2, 1, 128);
  load.answer = std::clamp<std::size_t>(cluster.plan.context / 4, 1, 32);
  const auto one = simulate(cluster, load);
  if (!one)
    return one.error();
  forecast made;
  made.one = rates_of(*one, cluster.plan.sizes.tensor, load);
  load.streams = load.requests = cluster.plan.max_sequences;
  const auto many = simulate(cluster, load);
  if (!many)
    return many.error();
  made.many = rates_of(*many, cluster.plan.sizes.tensor, load);
  return made;
}

} // namespace troupe::actors
