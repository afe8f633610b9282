#pragma once
// A scenario: a cluster that need not exist, for `troupe plan --simulate`. The file is as strict as
// a cluster file: what is wrong is told with file, line and caret. Filled by read_scenario,
// constant afterwards.

#include "config/dtype.hpp"
#include "config/result.hpp"
#include "config/settings_table.hpp"
#include "config/source_mark.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// [model]: a folder, or a shape by its name, or the sizes themselves.
struct scenario_model {
  std::filesystem::path path; ///< Empty: none.
  std::string shape;          ///< "70B"; empty: the sizes below.
  std::string family = "llama";
  std::uint64_t layers = 0;
  std::uint64_t hidden = 0;
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0; ///< 0: as many as heads.
  std::uint64_t head_dim = 0; ///< 0: hidden / heads.
  std::uint64_t ffn = 0;
  std::uint64_t vocabulary = 0;
  dtype stored = dtype::bf16;
  std::optional<dtype> held_dtype; ///< Key `dtype`; empty ("auto"): as stored.
  std::uint64_t context = 4096;    ///< Tokens of one sequence at most.
};

/// [[host]]: so many hosts of one kind.
struct scenario_host {
  std::uint64_t count = 1;
  std::uint64_t per_rack = 0; ///< 0: all in one rack.
  bool measured = false;      ///< Computes as this host does; the figures below are not asked for.
  std::uint64_t cores = 0;    ///< 0 with `measured`: those of this host.
  std::uint64_t memory_bytes = 0;
  std::uint64_t ranks = 1;   ///< On each host, each a process.
  std::uint64_t threads = 0; ///< Of each rank; 0: cores / ranks.
  double read_gb_per_s = 0;
  double gflop_per_s = 0;
  double read_reached = 0.85;
  double flops_reached = 0.75;
  double layer_us = 20;
};

/// [links]: latency of a message one way, handling included, and bandwidth.
struct scenario_links {
  double process_us = 5;
  double process_gb_per_s = 20;
  double host_us = 10;
  double host_gb_per_s = 8;
  double rack_us = 25;
  double rack_gb_per_s = 3;
  double across_us = 60;
  double across_gb_per_s = 1.2;
  double sum_us = 2; ///< Of a tensor group within one host, through shared memory.
  double sum_gb_per_s = 8;
};

/// [parallel]; 0: chosen.
struct scenario_parallel {
  std::uint64_t pipeline = 0;
  std::uint64_t tensor = 0;
  std::string best = "throughput"; ///< What is chosen for: "throughput" or "latency".
  dtype wire = dtype::f32;
};

/// [load]
struct scenario_load {
  std::uint64_t streams = 8;
  std::uint64_t requests = 0; ///< 0: two a stream.
  std::uint64_t prompt = 512;
  std::uint64_t answer = 128;
  double spread = 0; ///< Prompts and answers differ by up to this part, by the seed.
  std::uint64_t seed = 1;
};

/// [schedule] and [state]
struct scenario_schedule {
  std::uint64_t prefill_chunk = 64;
  std::uint64_t step_tokens = 256;
  std::uint64_t micro_batches = 0; ///< 0: as many as there are stages.
};

/// [failures]
struct scenario_failures {
  double hosts_per_week = 0;     ///< Of one host: how often it is gone with what it held.
  double processes_per_week = 0; ///< Of one host: a node ends and is started again there.
  double notice_s = 2;           ///< Until a failure is known.
  double join_s = 1;             ///< From a node's start until it loads.
  double load_gb_per_s = 1;      ///< Weights read by one host.
  std::uint64_t spares = 0;      ///< Hosts that take a place; they load first.
  double host_back_s = 600;      ///< Without a spare: until the host is there again.
};

struct scenario {
  std::string file;
  std::string name = "scenario";
  scenario_model model;
  std::vector<scenario_host> hosts;
  scenario_links links;
  scenario_parallel parallel;
  scenario_load load;
  scenario_schedule schedule;
  scenario_failures failures;
  std::map<std::string, source_mark, std::less<>> origins; ///< By "model.path", "host[0].cores".

  std::uint64_t host_count() const;

  /// "file:7: message" with a caret below the key's value; the file alone where it has its default.
  std::string point_at(std::string_view key, std::string_view message) const;
};

/// Errors: invalid_config with up to ten messages; not_found, io_error where the file cannot be
/// read.
result<scenario> read_scenario(const std::filesystem::path& file);

/// As read_scenario, from memory.
result<scenario> parse_scenario(std::string_view text, std::string_view name);

/// The table of what a scenario may say, bound to `which`, for reading and for docs/simulation.md.
std::vector<setting_section> sections_of(scenario& which);

} // namespace troupe
