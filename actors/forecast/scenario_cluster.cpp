#include "actors/forecast/scenario_cluster.hpp"

#include "compute/architectures/random_model.hpp"
#include "compute/weights/mapped_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <set>

namespace troupe::actors {

namespace {

/// The kind of each host, in the order in which hosts take ranks.
std::vector<std::size_t> kinds_of(const scenario& wanted) {
  std::vector<std::size_t> kinds;
  for (std::size_t kind = 0; kind < wanted.hosts.size(); ++kind)
    kinds.insert(kinds.end(), wanted.hosts[kind].count, kind);
  return kinds;
}

std::vector<host_speed>
speeds_of(const scenario& wanted, dtype hold, const std::optional<calibration>& here) {
  std::vector<host_speed> made;
  for (const auto& host : wanted.hosts) {
    if (host.measured) {
      check(here.has_value(), "a measured host has figures");
      made.push_back(here->speed);
      if (host.cores > 0)
        made.back().cores = host.cores;
      continue;
    }
    described_host described;
    described.cores = host.cores;
    described.read_bytes_per_s = host.read_gb_per_s * 1e9;
    described.flops_per_s = host.gflop_per_s * 1e9;
    described.read_reached = host.read_reached;
    described.flops_reached = host.flops_reached;
    described.unit_s = host.layer_us * 1e-6;
    made.push_back(speed_of(described, element_bytes(hold)));
  }
  return made;
}

/// How fast a host streams weights; stages are balanced by it.
double pace(const host_speed& speed) {
  return 1 / speed.products.all.front().element_s;
}

link_speed link_of(double latency_us, double gb_per_s) {
  return {latency_us * 1e-6, gb_per_s * 1e9};
}

std::size_t threads_of(const scenario_host& host, const host_speed& speed) {
  return host.threads > 0 ? host.threads : std::max<std::size_t>(1, speed.cores / host.ranks);
}

/// Makes clusters of one scenario, for the sizes that are tried.
class builder {
public:
  builder(const scenario& wanted,
          const compute::model& model,
          const std::optional<calibration>& here)
    : wanted_(wanted), model_(model), kinds_(kinds_of(wanted)),
      hold_(wanted.model.held_dtype.value_or(model.shape().stored)),
      speeds_(speeds_of(wanted, hold_, here)) {}

  std::size_t ranks() const {
    std::size_t sum = 0;
    for (const auto kind : kinds_)
      sum += wanted_.hosts[kind].ranks;
    return sum;
  }

  result<forecast_cluster> build(std::size_t pipeline, std::size_t tensor) const {
    const auto settings = settings_for(pipeline, tensor);
    auto plan = make_plan(settings, model_, 0);
    if (!plan)
      return plan.error();
    forecast_cluster made;
    made.plan = *std::move(plan);
    made.shape = model_.shape();
    made.prefill_chunk = wanted_.schedule.prefill_chunk;
    made.micro_batches = wanted_.schedule.micro_batches;
    place(made, settings);
    return made;
  }

private:
  cluster_settings settings_for(std::size_t pipeline, std::size_t tensor) const {
    cluster_settings made;
    made.file = wanted_.file;
    made.origins = wanted_.origins;
    made.model.held_dtype = hold_;
    made.model.context_tokens = wanted_.model.context;
    made.parallel.pipeline = pipeline;
    made.parallel.tensor = tensor;
    made.parallel.wire_dtype = wanted_.parallel.wire;
    made.state.max_sequences = wanted_.load.streams;
    made.schedule.step_tokens = wanted_.schedule.step_tokens;
    auto left = pipeline * tensor;
    for (std::size_t host = 0; host < kinds_.size() && left > 0; ++host) {
      const auto& kind = wanted_.hosts[kinds_[host]];
      for (std::size_t rank = 0; rank < kind.ranks && left > 0; ++rank, --left)
        made.nodes.push_back(node_for(host));
    }
    return made;
  }

  /// A process with one rank, at an address that is kept for benchmarks (RFC 2544): it is nobody's.
  node_settings node_for(std::size_t host) const {
    const auto& kind = wanted_.hosts[kinds_[host]];
    node_settings node;
    node.name = fmt::format("host-{}", host);
    node.advertise = fmt::format("198.18.{}.{}", host / 256 % 256, host % 256);
    node.threads = threads_of(kind, speeds_[kinds_[host]]);
    node.memory_bytes = kind.memory_bytes / kind.ranks;
    node.weight = pace(speeds_[kinds_[host]]) / pace(speeds_.front());
    return node;
  }

  void place(forecast_cluster& made, const cluster_settings& settings) const {
    for (const auto kind : kinds_)
      made.hosts.push_back(speeds_[kind]);
    std::size_t host = 0;
    std::size_t taken = 0;
    for (const auto& node : settings.nodes) {
      if (taken == wanted_.hosts[kinds_[host]].ranks) {
        ++host;
        taken = 0;
      }
      made.nodes.push_back({host, rack_of(host), node.threads});
      ++taken;
    }
    const auto& links = wanted_.links;
    made.links = {link_of(links.process_us, links.process_gb_per_s),
                  link_of(links.host_us, links.host_gb_per_s),
                  link_of(links.rack_us, links.rack_gb_per_s),
                  link_of(links.across_us, links.across_gb_per_s)};
    made.reducing = made.links;
    made.reducing[0] = made.reducing[1] = link_of(links.sum_us, links.sum_gb_per_s);
  }

  /// Racks are filled in order; hosts of another kind begin a new one.
  std::size_t rack_of(std::size_t host) const {
    std::size_t rack = 0;
    std::size_t first = 0;
    for (const auto& kind : wanted_.hosts) {
      const auto per_rack = kind.per_rack == 0 ? kind.count : kind.per_rack;
      if (host < first + kind.count)
        return rack + (host - first) / per_rack;
      rack += (kind.count + per_rack - 1) / per_rack;
      first += kind.count;
    }
    return rack;
  }

  const scenario& wanted_;
  const compute::model& model_;
  std::vector<std::size_t> kinds_;
  dtype hold_;
  std::vector<host_speed> speeds_; ///< By kind.
};

/// Seconds of the load by two short runs: one that only reads prompts, one that only answers.
result<double>
seconds_for(const forecast_cluster& cluster, const scenario_load& load, std::size_t streams) {
  constexpr std::size_t few = 8;
  offered_load part;
  part.streams = part.requests = streams;
  part.prompt = load.prompt;
  const auto prompts = simulate(cluster, part);
  if (!prompts)
    return prompts.error();
  part.prompt = 1;
  part.answer = few + 1;
  const auto answers = simulate(cluster, part);
  if (!answers)
    return answers.error();
  const auto rate = answers->decode_rate();
  return prompts->seconds + static_cast<double>(streams * load.answer) / rate;
}

/// Powers of two up to `most`, and `most`.
std::vector<std::size_t> sizes_up_to(std::size_t most) {
  std::set<std::size_t> sizes{most};
  for (std::size_t size = 1; size < most; size *= 2)
    sizes.insert(size);
  return {sizes.begin(), sizes.end()};
}

/// Pipelines and groups that can be cut, of those that the scenario leaves open.
std::vector<tried_size>
sizes_to_try(const scenario& wanted, const compute::model& model, std::size_t ranks) {
  const auto& parallel = wanted.parallel;
  if (parallel.pipeline > 0 && parallel.tensor > 0)
    return {{parallel.pipeline, parallel.tensor, 0}};
  std::vector<tried_size> made;
  const auto groups = parallel.tensor > 0 ? std::vector<std::size_t>{parallel.tensor}
                                          : sizes_up_to(std::min(ranks, model.max_tensor_size()));
  for (const auto tensor : groups) {
    const auto most = std::min(ranks / tensor, model.shape().layers);
    if (parallel.pipeline > 0 && parallel.pipeline <= most)
      made.push_back({parallel.pipeline, tensor, 0});
    else if (parallel.pipeline == 0 && most > 0)
      for (const auto pipeline : sizes_up_to(most))
        made.push_back({pipeline, tensor, 0});
  }
  return made;
}

/// Fills in the figures, and says which is best; the last error where none works.
result<tried_size>
choose(const builder& make, const scenario& wanted, std::vector<tried_size>& sizes) {
  const auto streams = wanted.parallel.best == "latency" ? 1 : wanted.load.streams;
  std::optional<error> refusal;
  const tried_size* best = nullptr;
  for (auto& one : sizes) {
    const auto cluster = make.build(one.pipeline, one.tensor);
    const auto taken =
      cluster ? seconds_for(*cluster, wanted.load, streams) : result<double>(cluster.error());
    if (!taken) {
      refusal = taken.error();
      continue;
    }
    one.figure = static_cast<double>(streams * wanted.load.answer) / *taken;
    if (best == nullptr || one.figure > best->figure)
      best = &one;
  }
  if (best != nullptr)
    return *best;
  return refusal.value_or(
    error{errc::invalid_config,
          wanted.point_at("parallel.pipeline",
                          "no size of pipeline and tensor group can be made of these hosts")});
}

/// By the seed, each its own prompt and answer.
std::vector<simulated_request> requests_of(const scenario_load& load) {
  std::mt19937_64 draw(load.seed);
  const auto vary = [&](std::uint64_t middle) {
    // Of the generator's bits alone: distributions differ between standard libraries.
    const auto at = static_cast<double>(draw() >> 11) * 0x1p-53 * 2 - 1;
    const auto size = static_cast<double>(middle) * (1 + load.spread * at);
    return std::max<std::size_t>(1, static_cast<std::size_t>(size));
  };
  std::vector<simulated_request> made(load.requests > 0 ? load.requests : 2 * load.streams);
  for (auto& one : made) {
    one.prompt = vary(load.prompt);
    one.answer = vary(load.answer);
  }
  return made;
}

} // namespace

result<std::shared_ptr<const compute::model>> model_of(const scenario& wanted) {
  const auto& model = wanted.model;
  if (!model.path.empty()) {
    auto whole = compute::model::open(model.path);
    if (whole || !std::filesystem::exists(model.path / "config.json"))
      return whole;
    const auto config = compute::mapped_file::open(model.path / "config.json");
    if (!config)
      return config.error();
    const auto bytes = (*config)->bytes();
    return compute::model::sketch({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                  model.path.string(),
                                  model.stored);
  }
  compute::random_model sizes;
  sizes.stored = model.stored;
  sizes.context = model.context;
  sizes.family = model.family;
  sizes.layers = model.layers;
  sizes.hidden = model.hidden;
  sizes.heads = model.heads;
  sizes.kv_heads = model.kv_heads > 0 ? model.kv_heads : model.heads;
  sizes.head_dim = model.head_dim;
  sizes.ffn = model.ffn;
  sizes.vocabulary = model.vocabulary;
  if (!model.shape.empty())
    compute::apply_named_shape(model.shape, sizes);
  const auto config = compute::config_text(sizes);
  if (!config)
    return error{config.error().code, wanted.point_at("model.family", config.error().what)};
  return compute::model::sketch(
    *config, model.shape.empty() ? "the model of " + wanted.name : model.shape, model.stored);
}

result<scenario_forecast> forecast_scenario(const scenario& wanted,
                                            const compute::model& model,
                                            const std::optional<calibration>& here) {
  const builder make(wanted, model, here);
  auto sizes = sizes_to_try(wanted, model, make.ranks());
  const auto& parallel = wanted.parallel;
  const auto asked =
    std::max<std::size_t>(1, parallel.pipeline) * std::max<std::size_t>(1, parallel.tensor);
  if (asked > make.ranks())
    return error{errc::invalid_config,
                 wanted.point_at(parallel.pipeline > 0 ? "parallel.pipeline" : "parallel.tensor",
                                 fmt::format("{} x {} ranks are more than the {} of these hosts",
                                             std::max<std::size_t>(1, parallel.pipeline),
                                             std::max<std::size_t>(1, parallel.tensor),
                                             make.ranks()))};
  const bool open = sizes.size() > 1;
  const auto chosen = open ? choose(make, wanted, sizes)
                      : sizes.empty()
                        ? result<tried_size>(tried_size{parallel.pipeline, parallel.tensor, 0})
                        : result<tried_size>(sizes.front());
  if (!chosen)
    return chosen.error();
  auto cluster = make.build(std::max<std::size_t>(1, chosen->pipeline),
                            std::max<std::size_t>(1, chosen->tensor));
  if (!cluster)
    return cluster.error();
  scenario_forecast made;
  made.cluster = *std::move(cluster);
  if (open)
    made.tried = std::move(sizes);
  std::set<std::size_t> used;
  for (const auto& node : made.cluster.nodes)
    used.insert(node.host);
  made.hosts_used = used.size();
  const auto run = simulate(made.cluster, requests_of(wanted.load), wanted.load.streams);
  if (!run)
    return run.error();
  made.run = *run;
  made.figures = rates_of(made.run,
                          made.cluster.plan.sizes.tensor,
                          {.streams = wanted.load.streams,
                           .requests = made.run.requests.size(),
                           .prompt = wanted.load.prompt,
                           .answer = wanted.load.answer});
  const auto live = std::min<std::size_t>(wanted.load.streams, made.cluster.plan.max_sequences);
  const auto positions =
    static_cast<double>(live)
    * (static_cast<double>(wanted.load.prompt) + static_cast<double>(wanted.load.answer) / 2);
  made.recoveries = forecast_recoveries(made.cluster, wanted.failures, positions);
  return made;
}

} // namespace troupe::actors
