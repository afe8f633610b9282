#pragma once
// The settings of a cluster as plain values: what a cluster file says, with every default filled
// in. Each field names its unit; `0` has a meaning only where the comment says so. Why a default is
// what it is, which values are allowed and how a key is spelt in the file is said once, in
// config/settings_table.cpp; docs/configuration.md is that table as a page.
//
// Filled by config/cluster_file.hpp, constant afterwards, safe to read from every thread.

#include "config/dtype.hpp"
#include "config/ids.hpp"
#include "config/log.hpp"
#include "config/source_mark.hpp"
#include "config/topology.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// [cluster]
struct cluster_identity {
  std::string name = "troupe";
  std::string head; ///< The node that hosts director and conductor; the reader fills in the first.
  log::level log_level = log::level::info;
};

/// [model]
struct model_settings {
  /// A Hugging Face folder, absolute; or exactly "demo", the model that comes with the program.
  std::filesystem::path path;
  std::optional<dtype> held_dtype;  ///< Key `dtype`; empty ("auto"): as it is stored.
  std::uint64_t context_tokens = 0; ///< Key `context`; 0: as many as the model was made for.
  std::filesystem::path tokenizer;  ///< A folder; empty: the model's.
  bool allow_vocabulary_padding = false;

  bool is_demo() const { return path == "demo"; }
};

/// [parallel]
struct parallel_settings {
  std::uint64_t pipeline = 1;
  std::uint64_t tensor = 1;
  std::uint64_t data = 1; ///< Only 1 is implemented.
  /// The cluster serves with fewer stages down to so many while nodes are away; 0: with all only.
  std::uint64_t least_stages = 0;
  dtype wire_dtype = dtype::f32;
  bool frame_digest = true; ///< Each frame proves that it arrived as it left.
  std::vector<range> layers; ///< One range a stage, contiguous from 0; empty: balanced by cost.
};

/// [state]: the attention memory of live sequences.
struct state_settings {
  std::uint64_t memory_bytes =
    0; ///< Key `memory`, for one rank; 0 ("auto"): what the node has left.
  std::uint64_t max_sequences = 8;
  troupe::dtype dtype = troupe::dtype::f32; ///< Of keys and values: f32, f16 or bf16.
};

/// [schedule]: what the conductor puts into one step.
struct schedule_settings {
  std::uint64_t prefill_chunk = 64; ///< Tokens of one prompt in a step at most.
  std::uint64_t step_tokens = 256;  ///< Rows of a step at most, prompts and answers together.
  std::uint64_t queue = 256;        ///< Requests that may wait.
  std::uint64_t micro_batches = 0;  ///< Steps in flight; 0: as many as there are stages.
};

/// [[node]]: a process on a host. Nodes take ranks in the order of the file.
struct node_settings {
  std::string name;
  std::string bind = "127.0.0.1"; ///< Numeric address, or a host name, to listen on.
  std::string advertise;          ///< Where the others reach it; the reader fills in `bind`.
  std::uint64_t port = 0;         ///< Control port, 0 ... 65535; 0: any free one.
  std::uint64_t ranks = 1;
  bool spare = false;        ///< Holds nothing until it takes the place of a node that was lost.
  std::uint64_t threads = 0; ///< For each rank; 0: the cores of the host / ranks.
  std::uint64_t memory_bytes =
    0; ///< Key `memory`, for all ranks; 0 ("auto"): what the host has free.
  std::vector<std::string> devices; ///< UCX network devices, "mlx5_0:1"; empty: UCX chooses.
  std::string transports;           ///< UCX_TLS; empty: UCX chooses.
  std::filesystem::path model_path; ///< Where this node keeps the model; empty: model.path.
  double weight = 1.0;              ///< Speed relative to the other nodes, for uneven splits.
  std::string device = "cpu";       ///< What computes.
  bool pin = false;                 ///< Bind each rank's threads to cores of their own.
  std::string instruction_set;      ///< Of the arithmetic, "avx2"; empty: the host's best.
};

/// [security]: what a node must show to the others. A secret, certificates, or both.
struct security_settings {
  std::filesystem::path secret_file; ///< At least 16 bytes, not readable for others.
  std::filesystem::path certificate; ///< PEM; goes with `key` and `authority`.
  std::filesystem::path key;
  std::filesystem::path authority; ///< PEM of the cluster's own certificate authority.

  bool has_secret() const { return !secret_file.empty(); }

  bool has_certificates() const { return !certificate.empty(); }
};

/// [limits] of one request.
struct limit_settings {
  std::uint64_t max_prompt_tokens = 0; ///< 0: what the context holds.
  std::uint64_t max_new_tokens = 0;    ///< 0: what the context holds.
};

/// [deadlines]
struct deadline_settings {
  std::uint64_t join_ms = 60'000;    ///< A node waits for the others.
  std::uint64_t load_ms = 600'000;   ///< All ranks have loaded their shards.
  std::uint64_t connect_ms = 5'000;  ///< One try to reach one peer.
  std::uint64_t step_ms = 60'000;    ///< One step through all stages.
  std::uint64_t drain_ms = 10'000;   ///< A stop lets running requests end.
  std::uint64_t progress_ms = 2'000; ///< Who shows no progress for so long is frozen.
  std::uint64_t request_ms = 0;      ///< A whole request, waiting included; 0: no deadline.
  std::uint64_t status_ms = 2'000;   ///< An answer to a question about the cluster's state.
};

/// [recovery]: what follows on a fault.
struct recovery_settings {
  std::filesystem::path journal;          ///< What the head must not forget; empty: no journal.
  bool keep_boundaries = true;            ///< Stages keep the rows that they sent, for replays.
  std::uint64_t restarts = 5;             ///< Of one node by `troupe up` in a row; 0: none.
  std::uint64_t shrink_after_ms = 10'000; ///< The cluster waits so long for a node that is away.
  std::uint64_t restart_pause_ms = 200;   ///< Before the first restart; doubles with each.
};

/// [generate]: what a request gets where it does not say otherwise.
struct generate_settings {
  std::uint64_t max_tokens = 128;
  double temperature = 0.0;        ///< 0: greedy.
  std::uint64_t top_k = 0;         ///< 0: off.
  double top_p = 1.0;              ///< 1: off.
  double min_p = 0.0;              ///< 0: off.
  double repetition_penalty = 1.0; ///< 1: off.
  std::uint64_t seed = 0;
};

/// [[fault]]: something that goes wrong on purpose. config/fault.hpp reads `where` and `when`.
struct fault_settings {
  std::string what = "kill";
  std::string where = "any";
  std::string when = "step 1";
  std::uint64_t times = 1;    ///< How often, from that moment on.
  std::uint64_t steps = 0;    ///< How long a stop, a slow spell or a cut lasts; 0: for good.
  std::uint64_t ms = 100;     ///< How late a delayed frame leaves.
  double factor = 10.0;       ///< How many times as long a slow rank takes for a layer.
  std::string length = "n-2"; ///< Of a collective with n elements.
  std::uint64_t seed = 0;     ///< Chooses what `any` leaves open, and the place of the damage.
};

/// [serve]: the HTTP endpoint in the head's process.
struct serve_settings {
  bool enabled = false;
  std::string bind = "127.0.0.1";
  std::uint64_t port = 8080;         ///< 0: any free one.
  std::string model_name;            ///< Empty: the name of the model's folder.
  std::filesystem::path keys_file;   ///< API keys, one a line; empty: none are asked for.
  std::filesystem::path certificate; ///< PEM; goes with `key`. Empty: plain HTTP.
  std::filesystem::path key;
  std::vector<std::string> origins; ///< Web origins that may call it; "*" is all.
  std::string unknown_parameters = "refuse";
  std::uint64_t max_choices = 16; ///< Answers of one request: prompts x n.
  std::uint64_t body_bytes = 8 << 20;
  std::uint64_t header_bytes = 16 << 10;
  std::uint64_t nesting = 64; ///< Levels of JSON.
  std::uint64_t connections = 1024;
  std::uint64_t idle_ms = 75'000;                ///< Between two requests of a connection.
  std::uint64_t read_ms = 30'000;                ///< A whole request, first byte to last.
  std::uint64_t keep_alive_ms = 5'000;           ///< A stream says something this often.
  std::uint64_t stream_buffer_bytes = 256 << 10; ///< Of one answer, unsent.

  bool has_certificate() const { return !certificate.empty(); }
};

/// Everything that a cluster file says.
struct cluster_settings {
  std::string file; ///< The name that messages use.
  cluster_identity cluster;
  model_settings model;
  parallel_settings parallel;
  state_settings state;
  schedule_settings schedule;
  std::vector<node_settings> nodes; ///< At least one; the order of the file is the order of ranks.
  security_settings security;
  limit_settings limits;
  deadline_settings deadlines;
  recovery_settings recovery;
  generate_settings generate;
  std::vector<fault_settings> faults; ///< In the order of the file; mostly none.
  serve_settings serve;

  /// Where each key that was given came from, by its full name: "model.context",
  /// "node[0].threads". A key that is absent here has its default.
  std::map<std::string, source_mark, std::less<>> origins;

  std::uint64_t world() const { return parallel.pipeline * parallel.tensor; }

  /// Position of the head in `nodes`.
  std::size_t head_index() const;

  /// nullptr when there is no node of that name.
  const node_settings* find_node(std::string_view name) const;

  /// True when every node binds to and is reached over loopback: one host holds the cluster.
  bool on_one_host() const;

  /// The folder in which a node finds the model: its own `model_path`, else model.path.
  const std::filesystem::path& model_path_of(const node_settings& node) const;

  /// "cluster.toml:7: <message>" with the line and `comment` below a caret under the key
  /// `full_name`, for example "parallel.tensor" or "node[1].memory". Where the key has its default:
  /// "cluster.toml: <message> (<comment>)".
  std::string point_at(std::string_view full_name,
                       std::string_view message,
                       std::string_view comment = {}) const;
};

/// A rank and the node that hosts it.
struct rank_placement {
  rank_id rank{};
  node_id node{};                ///< Position in cluster_settings::nodes.
  std::size_t index_in_node = 0; ///< 0 ... node.ranks - 1.

  friend bool operator==(const rank_placement&, const rank_placement&) = default;
};

/// Ranks are numbered stage by stage (config/topology.hpp); nodes take consecutive ranks in the
/// order of the file, so a tensor group may span nodes. One entry a rank, ascending.
std::vector<rank_placement> place_ranks(const cluster_settings& settings);

} // namespace troupe
