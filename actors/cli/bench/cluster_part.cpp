// bench_clusters (actors/cli/bench/bench_run.hpp): one model in one process and in two, by the same
// program, wires and schedule as everywhere.
#include "actors/cli/bench/bench_run.hpp"
#include "actors/cli/bench/cluster_way.hpp"
#include "actors/cli/bench/step_traffic.hpp"
#include "actors/cli/cancel_on_signal.hpp"
#include "actors/cli/local_cluster.hpp"
#include "actors/host/passing_path.hpp"
#include "compute/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

namespace troupe::cli {

namespace {

constexpr std::size_t short_prompt = 16; ///< Of each of several streams: one step for all.

actors::text_request request_of(std::size_t prompt, std::size_t steps, std::size_t vocabulary) {
  actors::text_request made;
  for (std::size_t i = 0; i < prompt; ++i)
    made.tokens.push_back(static_cast<token_id>(i * 7919 % vocabulary));
  made.max_tokens = static_cast<std::uint32_t>(steps);
  made.ignore_end = true;
  return made;
}

result<std::vector<actors::text_answer>>
ask(actors::cluster_client& client, const actors::text_request& one, std::size_t count) {
  std::atomic<bool> cancel{false};
  auto answers = [&] {
    const cancel_on_signal watch(cancel);
    return client.generate(std::vector<actors::text_request>(count, one), {}, cancel);
  }();
  if (!answers)
    return answers;
  if (cancel)
    return error{errc::cancelled, "stopped"};
  for (const auto& answer : *answers)
    if (answer.finish != "length")
      return error{answer.code,
                   fmt::format("a request ended by '{}': {}", answer.finish, answer.what)};
  return answers;
}

/// Tokens a second of all answers together: what each reached from its first token on, added up.
/// First tokens come out of the prompts and are not counted, and they do not come all at once.
double decode_rate(const std::vector<actors::text_answer>& answers) {
  double rate = 0;
  for (const auto& answer : answers)
    if (const auto taken = answer.total_s - answer.first_token_s; taken > 0)
      rate += static_cast<double>(answer.tokens.size() - 1) / taken;
  return rate;
}

struct cluster_rates {
  std::vector<double> prompt, alone, together; ///< Tokens a second.
  double start_ms = 0;                         ///< Until it served.
  step_traffic traffic;                        ///< Of a token.
};

result<cluster_rates> measure(actors::cluster_client& client, const clustered_model& bench) {
  const auto& options = bench.options;
  const auto vocabulary = bench.model->shape().vocabulary;
  const auto one = request_of(options.prompt, options.steps + 1, vocabulary);
  const auto many =
    request_of(std::min(short_prompt, options.prompt), options.steps + 1, vocabulary);
  auto warm = many;
  warm.max_tokens = 2;
  if (auto warmed = ask(client, warm, 1); !warmed)
    return warmed.error();
  cluster_rates rates;
  for (std::size_t i = 0; i < options.repeats; ++i) {
    const auto alone = ask(client, one, 1);
    if (!alone)
      return alone.error();
    rates.prompt.push_back(static_cast<double>(options.prompt) / alone->front().first_token_s);
    rates.alone.push_back(decode_rate(*alone));
    const auto together = ask(client, many, bench_streams);
    if (!together)
      return together.error();
    rates.together.push_back(decode_rate(*together));
  }
  const auto traffic = traffic_of_token(client, request_of(1, options.steps + 1, vocabulary));
  if (!traffic)
    return traffic.error();
  rates.traffic = *traffic;
  return rates;
}

/// What a way can reach at most: the threads that work at once, and how often all weights are read.
class way_limits {
public:
  way_limits(const clustered_model& bench,
             const cluster_way& one,
             machine_limits alone,
             machine_limits all)
    : bench_(bench), one_(one), costs_(bench.model->costs(bench.held)), alone_(alone), all_(all) {}

  /// Rows of so many streams: each thread reads its part of the weights once a step. With two
  /// stages one stream keeps one of them busy at a time; several streams make two steps, and each
  /// of them reads all weights.
  double decode(std::size_t count) const {
    const auto rows = static_cast<double>(count);
    return rows / rates(count).least_seconds(bytes(count), rows * operations(), is_whole());
  }

  double prompt(std::size_t tokens) const {
    const auto rows = static_cast<double>(tokens);
    const auto work = rows * layers() * costs_.unit_flops + costs_.output_flops;
    return rows / all_.least_seconds(0, work, is_whole());
  }

  const char* prompt_bound() const { return is_whole() ? "int8 multiply-add" : "f32 multiply-add"; }

  const char* decode_bound(std::size_t count) const {
    const auto reading = rates(count).least_seconds(bytes(count), 0);
    const auto work = static_cast<double>(count) * operations();
    if (rates(count).least_seconds(0, work, is_whole()) > reading)
      return prompt_bound();
    if (one_.pipeline == 1)
      return "read bandwidth";
    return count == 1 ? "read bandwidth of the stage that works"
                      : "read bandwidth; each of two steps reads all weights";
  }

  /// Reading all weights, by as many threads as there are.
  double reading_s() const { return all_.least_seconds(bytes(1), 0); }

private:
  double layers() const { return static_cast<double>(bench_.model->shape().layers); }

  /// Of the threads that work at once.
  const machine_limits& rates(std::size_t count) const {
    return one_.pipeline > 1 && count == 1 ? alone_ : all_;
  }

  double bytes(std::size_t count) const {
    const auto steps = static_cast<double>(count == 1 ? 1 : one_.pipeline);
    return steps * (layers() * costs_.unit_bytes + costs_.output_bytes);
  }

  double operations() const { return layers() * costs_.unit_flops + costs_.output_flops; }

  bool is_whole() const { return is_quantised(bench_.held); }

  const clustered_model& bench_;
  const cluster_way& one_;
  const compute::model_costs costs_;
  const machine_limits alone_;
  const machine_limits all_;
};

/// Adds the rows of one way.
class way_rows {
public:
  way_rows(bench_run& run,
           const clustered_model& bench,
           const cluster_way& one,
           const way_limits& limits)
    : run_(run), bench_(bench), one_(one), limits_(limits) {}

  void add(const cluster_rates& rates) {
    const auto prompt = bench_.options.prompt;
    add(fmt::format("prompt of {}", prompt),
        "tokens/s",
        rates.prompt,
        limits_.prompt(prompt),
        limits_.prompt_bound());
    for (const auto count : {std::size_t{1}, bench_streams})
      add(fmt::format("decode, {}", counted(count, "stream")),
          "tokens/s",
          count == 1 ? rates.alone : rates.together,
          limits_.decode(count),
          limits_.decode_bound(count));
    add("start to serving",
        "ms",
        {rates.start_ms},
        limits_.reading_s() * 1e3,
        "reading the weights once");
    add_traffic(rates.traffic);
  }

private:
  /// Counts, not times: the same in every run.
  void add_traffic(const step_traffic& moved) {
    const auto& shape = bench_.model->shape();
    const auto row = static_cast<double>(shape.hidden * sizeof(float));
    const auto sums = 2 * static_cast<double>(shape.layers);
    const auto again = [](double value) { return std::vector<double>{value, value}; };
    if (one_.pipeline > 1) {
      add("boundary bytes a token", "B", again(moved.boundary_bytes), row, "the row itself");
      add("boundary messages a token", "messages", again(moved.boundary_messages), 1, "one");
    }
    if (one_.tensor > 1) {
      add("reduced bytes a token and rank",
          "B",
          again(moved.reduction_bytes),
          sums * row,
          "two sums a layer");
      add("collectives a token", "messages", again(moved.reductions), sums, "two sums a layer");
    }
  }

  void add(const std::string& what,
           const std::string& unit,
           const std::vector<double>& values,
           double limit,
           const std::string& limited_by) {
    auto row = row_of("cluster", fmt::format("{}, {}", what, one_.name), unit, values);
    row.limit = limit;
    row.fraction = row.higher_is_better() ? row.found.median / limit : limit / row.found.median;
    row.limited_by = limited_by;
    row.threads = one_.all_threads();
    run_.add(std::move(row));
  }

  bench_run& run_;
  const clustered_model& bench_;
  const cluster_way& one_;
  const way_limits& limits_;
};

/// Starts the cluster, measures, and ends it.
result<cluster_rates> measure_cluster(const clustered_model& bench, const cluster_way& one) {
  const actors::passing_path file("bench.toml");
  if (auto written = write_file(file.path(), bench.file_of(one)); !written)
    return written.error();
  const cluster_options own{file.path().string(), {}};
  const auto settings = read_cluster(own);
  if (!settings)
    return settings.error();
  const auto begin = std::chrono::steady_clock::now();
  auto cluster = local_cluster::start_for_command(*settings, own, false, bench.options.quiet);
  if (!cluster)
    return cluster.error();
  const std::chrono::duration<double, std::milli> started =
    std::chrono::steady_clock::now() - begin;
  auto rates = measure((*cluster)->client(), bench);
  const auto stopped = (*cluster)->stop();
  if (!rates)
    return rates;
  if (!stopped)
    return stopped.error();
  rates->start_ms = started.count();
  return rates;
}

result<void> measure_way(bench_run& run, const clustered_model& bench, const cluster_way& one) {
  if (auto on = run.begin("the model: " + one.name); !on)
    return on;
  const auto alone = run.limits(1);
  const auto all = run.limits(one.all_threads());
  if (!alone || !all)
    return alone ? all.error() : alone.error();
  run.forget_probes();
  run.clear_progress();
  const auto rates = measure_cluster(bench, one);
  if (!rates)
    return rates.error();
  const way_limits limits(bench, one, *alone, *all);
  way_rows(run, bench, one, limits).add(*rates);
  return {};
}

} // namespace

result<void> bench_clusters(bench_run& run, const std::filesystem::path& folder) {
  const auto bench = clustered_model::open(run.options(), folder);
  if (!bench)
    return bench.error();
  for (const auto& one : cluster_ways(run.threads(), *bench->model))
    if (auto measured = measure_way(run, *bench, one); !measured)
      return with_context(one.name, measured.error());
  return {};
}

} // namespace troupe::cli
