#include "config/settings_table.hpp"

#include "config/setting_rows.hpp"

#include <fmt/core.h>

namespace troupe {

namespace {

// Numbers of tokens, rows and requests; far above what fits any machine, far below an overflow.
constexpr double many = 1 << 30;
constexpr double most_ranks = 65'536;
constexpr double day_ms = 86'400'000;

std::vector<setting> rows(cluster_identity& s) {
  return {
    {"name", &s.name, "Shown in logs and status; tells clusters on one host apart."},
    {"head",
     &s.head,
     "The node that hosts director and conductor, which admit requests and sample tokens. The "
     "first node when absent, because it holds the first stage and so the prompts."},
    {"log",
     &s.log_level,
     "How much is logged: info says a run, debug an object, trace a phase transition, data a "
     "frame. info, because its lines are few enough to read."},
  };
}

std::vector<setting> rows(model_settings& s) {
  return {
    {"path",
     path_slot{&s.path, "demo"},
     "A Hugging Face model folder: config.json and safetensors. \"demo\" is the small model that "
     "comes with the program; a folder of that name is \"./demo\".",
     {},
     true},
    {"dtype",
     &s.held_dtype,
     "In which type the weights are held in memory. \"auto\" holds what is stored: a wider type "
     "gains nothing and costs bandwidth, a narrower one loses accuracy. int8 and int4 are made at "
     "load, in blocks of 32 weights with a scale: 1.06 and 0.63 bytes a weight."},
    {"context",
     &s.context_tokens,
     "Tokens of a sequence at most, prompt and answer together. 0 is as many as the model was made "
     "for; fewer make the attention state smaller.",
     {0, many}},
    {"tokenizer",
     path_slot{&s.tokenizer, {}},
     "A folder with tokenizer.json or tokenizer.model. The model's own folder when absent, because "
     "another tokenizer gives ids that the model was not trained on."},
    {"allow_vocabulary_padding",
     &s.allow_vocabulary_padding,
     "Accept a tokenizer with fewer entries than the model's vocabulary (models pad it to a round "
     "number). Off, because the same sight is the sign of a tokenizer of another model."},
  };
}

std::vector<setting> rows(parallel_settings& s) {
  return {
    {"pipeline",
     &s.pipeline,
     "Pipeline stages: each holds a contiguous range of layers. 1 runs without a split.",
     {1, most_ranks}},
    {"tensor",
     &s.tensor,
     "Ranks of one stage that share each layer, head by head and block by block. 1 runs without a "
     "split; needs a fast link, for a layer takes two reductions.",
     {1, most_ranks}},
    {"data", &s.data, "Copies of the whole model. Only 1 is implemented.", {1, most_ranks}},
    {"least_stages",
     &s.least_stages,
     "The cluster serves with fewer stages than `pipeline`, down to so many, while nodes are away, "
     "and grows again when they come: layers are dealt anew. 0 waits for all nodes, always.",
     {0, most_ranks}},
    {"wire_dtype",
     &s.wire_dtype,
     "Type of activations between stages. f32 gives the same bits as one process; f16 and bf16 "
     "halve the bytes and round to 11 and 8 significant bits, so that other tokens may be chosen. "
     "f16 holds at most 65504."},
    {"frame_digest",
     &s.frame_digest,
     "Each frame between ranks carries a digest of its header and payload, and its receiver "
     "compares it. On, because no wire is without errors and it costs little; measured in "
     "docs/decisions/0012-frames-carry-a-digest.md."},
    {"layers",
     &s.layers,
     "Layers of each stage, [first, end). Empty: the plan balances the stages by cost, embedding "
     "and head counted, and by the weights of the nodes."},
  };
}

std::vector<setting> rows(state_settings& s) {
  return {
    {"memory",
     byte_count{&s.memory_bytes},
     "Attention memory of one rank; requests that do not fit wait. \"auto\" takes what the "
     "node's budget leaves after the weights."},
    {"max_sequences",
     &s.max_sequences,
     "Requests that are computed at the same time. 8 keeps a small host busy; each holds state.",
     {1, many}},
    {"dtype",
     &s.dtype,
     "Type in which keys and values are held. f32 rounds nothing; f16 and bf16 take half of the "
     "memory and are read in half of the time, and round to 11 and 8 significant bits, so that "
     "other tokens may be chosen. f16 holds at most 65504."},
  };
}

std::vector<setting> rows(schedule_settings& s) {
  return {
    {"prefill_chunk",
     &s.prefill_chunk,
     "Tokens of one prompt in a step at most. 64 fills the arithmetic units and delays the running "
     "answers by little; the result does not depend on it.",
     {1, many}},
    {"step_tokens",
     &s.step_tokens,
     "Rows of a step at most, of all requests together; sizes the buffers of each rank.",
     {1, many}},
    {"queue",
     &s.queue,
     "Requests that may wait; further ones are refused at once instead of waiting for ever.",
     {0, many}},
    {"micro_batches",
     &s.micro_batches,
     "Steps in flight at the same time. 0 is as many as there are stages: fewer leave a stage "
     "idle, more only wait.",
     {0, most_ranks}},
  };
}

std::vector<setting> rows(node_settings& s) {
  return {
    {"name",
     &s.name,
     "Unique in the cluster: letters, digits, '-' and '_'. Also on the command line: --name.",
     {},
     true},
    {"bind",
     &s.bind,
     "Address to listen on. Loopback, because listening on a network needs a secret or "
     "certificates. \"0.0.0.0\" is every interface."},
    {"advertise",
     &s.advertise,
     "Address under which the other nodes reach this one. `bind` when absent; differs behind NAT "
     "and where `bind` is every interface."},
    {"port",
     &s.port,
     "Control port. 0 takes a free one, which the others can learn only on the same host: the head "
     "of a cluster of several hosts needs a number, other nodes do not.",
     {0, 65'535}},
    {"ranks",
     &s.ranks,
     "Ranks that this node hosts. One, because the threads of one rank already use all cores.",
     {1, 1024}},
    {"spare",
     &s.spare,
     "A node that holds nothing until another one with as many ranks is lost, and takes its place "
     "then. Not counted in pipeline x tensor."},
    {"threads",
     &s.threads,
     "Threads of each rank. 0 divides the cores of the host by the ranks of this node.",
     {0, 4096}},
    {"memory",
     byte_count{&s.memory_bytes},
     "Budget of this node for weights, state and buffers of all its ranks; a plan that needs more "
     "is refused. \"auto\" is what the host has free at the start."},
    {"devices",
     &s.devices,
     "Network devices that UCX may use, such as \"mlx5_0:1\" or \"eth0\". Empty is the interface "
     "that carries bind or advertise, and no other; where none does, all that UCX finds."},
    {"transports",
     &s.transports,
     "Transports that UCX may use, in the words of UCX_TLS: \"tcp\", \"rc,sm,self\". Empty lets "
     "UCX choose. Without shared memory among them (sm, posix, sysv, cma) tensor groups of several "
     "processes of one host reduce over these, too."},
    {"model_path",
     path_slot{&s.model_path, {}},
     "Where this node has the model, if not at model.path. The contents must be the same."},
    {"weight",
     &s.weight,
     "Speed of this node relative to the others: with weights 2 and 1 the first takes two thirds "
     "of the layers. 1, because hosts are mostly equal; `troupe plan --calibrate` prints a figure "
     "for the host that it runs on. Not beside parallel.layers.",
     {0, 1e6, true}},
    {"device", choice{&s.device, {"cpu"}}, "What computes."},
    {"pin",
     &s.pin,
     "Bind threads to cores of their own. Off, because it harms as soon as something else runs on "
     "the host."},
    {"instruction_set",
     &s.instruction_set,
     "Instructions that the arithmetic of this node uses at most: \"avx3\" (AVX-512), \"avx2\", "
     "\"sse4\" or \"scalar\". The best of the host when absent. avx3 and avx2 give the same bits; "
     "sse4 and scalar round differently, and make all nodes alike where one host has no better."},
  };
}

std::vector<setting> rows(security_settings& s) {
  return {
    {"secret_file",
     path_slot{&s.secret_file, {}},
     "A file of at least 16 bytes that all nodes share and others cannot read; nodes prove that "
     "they know it. Make one with: head -c 32 /dev/urandom | base64 > cluster.secret"},
    {"certificate",
     path_slot{&s.certificate, {}},
     "This node's certificate (PEM), for mutual TLS on the control channel. Goes with key and "
     "authority."},
    {"key", path_slot{&s.key, {}}, "The private key (PEM) of the certificate."},
    {"authority",
     path_slot{&s.authority, {}},
     "The certificate (PEM) of the cluster's own certificate authority. Each holder of a "
     "certificate that it signed may join, so use it for nothing else."},
  };
}

std::vector<setting> rows(limit_settings& s) {
  return {
    {"max_prompt_tokens",
     &s.max_prompt_tokens,
     "Longest prompt that is accepted. 0 is what the context holds.",
     {0, many}},
    {"max_new_tokens",
     &s.max_new_tokens,
     "Longest answer that a request may ask for. 0 is what the context holds.",
     {0, many}},
  };
}

std::vector<setting> rows(deadline_settings& s) {
  return {
    {"join_ms",
     &s.join_ms,
     "How long a node waits for the others. A minute, since people start hosts one by one; after "
     "it the missing ones are named.",
     {1, day_ms}},
    {"load_ms",
     &s.load_ms,
     "How long all ranks may take to load their shards. Ten minutes: 60 GB from a disk of 100 "
     "MB/s.",
     {1, day_ms}},
    {"connect_ms",
     &s.connect_ms,
     "One attempt to reach one peer. Several round trips over a bad line.",
     {1, day_ms}},
    {"step_ms",
     &s.step_ms,
     "One step through all stages. Must be above the slowest step of a healthy cluster; a slow "
     "rank that progresses is not dead.",
     {1, day_ms}},
    {"drain_ms",
     &s.drain_ms,
     "How long a stop waits for running requests before it cancels them.",
     {0, day_ms}},
    {"progress_ms",
     &s.progress_ms,
     "A node that says nothing, or a rank that shows no progress within a step, for so long is "
     "given "
     "up as frozen; neither TCP nor UCX would notice within minutes. Above the longest pause of a "
     "busy host.",
     {100, day_ms}},
    {"request_ms",
     &s.request_ms,
     "A whole request, waiting included. 0 is no deadline: the client leaves when it has enough.",
     {0, day_ms}},
    {"status_ms",
     &s.status_ms,
     "An answer to a question about the state of the cluster.",
     {1, day_ms}},
  };
}

std::vector<setting> rows(recovery_settings& s) {
  return {
    {"journal",
     path_slot{&s.journal, {}},
     "A file in which the head notes requests and their tokens as they are given, so that they go "
     "on "
     "when its process has died and is started again; the other nodes wait for it meanwhile, with "
     "their shards loaded. On the disk of the head; empty keeps none. Outlives the process, not a "
     "power failure."},
    {"shrink_after_ms",
     &s.shrink_after_ms,
     "How long the cluster waits for a node that is away before the others go on without it, where "
     "parallel.least_stages lets them. Ten seconds: a restart takes less, and loading shards anew "
     "costs more than a short wait.",
     {0, day_ms}},
    {"keep_boundaries",
     &s.keep_boundaries,
     "Each stage keeps the rows that it sent to the next one for as long as their request lives, "
     "so "
     "that a stage that is lost is rebuilt alone. Costs the hidden size for each token beside its "
     "attention state; without, all stages before a lost one compute their part again."},
    {"restarts",
     &s.restarts,
     "How often `troupe up` starts a node again that ended by a fault, counted anew once the "
     "cluster "
     "has served for a minute. 0 ends the cluster with its first fault.",
     {0, many}},
    {"restart_pause_ms",
     &s.restart_pause_ms,
     "The pause before a node is started again; it doubles with each restart in a row, up to "
     "thirty "
     "seconds, so that a node that cannot start does not keep its host busy.",
     {0, day_ms}},
  };
}

std::vector<setting> rows(generate_settings& s) {
  return {
    {"max_tokens", &s.max_tokens, "Tokens of an answer at most.", {1, many}},
    {"temperature",
     &s.temperature,
     "Flattens (above 1) or sharpens (below 1) the choice of the next token. 0 takes the most "
     "likely one, so that the same prompt gives the same answer.",
     {0, 100}},
    {"top_k", &s.top_k, "Choose among the k most likely tokens. 0 is off.", {0, many}},
    {"top_p",
     &s.top_p,
     "Choose among the most likely tokens whose probabilities add up to p. 1 is off.",
     {0, 1, true}},
    {"min_p",
     &s.min_p,
     "Leave out tokens less likely than this part of the most likely one. 0 is off.",
     {0, 1}},
    {"repetition_penalty",
     &s.repetition_penalty,
     "Makes tokens that have occurred less likely (above 1). 1 is off.",
     {0, 100, true}},
    {"seed",
     &s.seed,
     "Start of the random numbers. The same seed and prompt give the same answer, whatever else "
     "the cluster computes at that time."},
  };
}

} // namespace

std::string header_of(std::string_view section) {
  return is_list(section) ? fmt::format("[[{}]]", section) : fmt::format("[{}]", section);
}

std::vector<setting_section> sections_of(cluster_settings& s) {
  std::vector<setting_section> sections;
  sections.push_back({"cluster", "cluster.", "The cluster as a whole.", rows(s.cluster)});
  sections.push_back({"model", "model.", "What is run.", rows(s.model)});
  sections.push_back(
    {"parallel", "parallel.", "How the model is split over ranks.", rows(s.parallel)});
  sections.push_back({"state", "state.", "Attention memory of live requests.", rows(s.state)});
  sections.push_back(
    {"schedule", "schedule.", "What the conductor puts into a step.", rows(s.schedule)});
  for (std::size_t i = 0; i < s.nodes.size(); ++i)
    sections.push_back({"node",
                        fmt::format("node[{}].", i),
                        "A process on a host; one [[node]] each. Ranks are numbered stage by "
                        "stage, and nodes take consecutive ranks in the order of the file.",
                        rows(s.nodes[i])});
  sections.push_back({"security",
                      "security.",
                      "What nodes prove to each other. Listening or advertising beyond loopback "
                      "needs a secret or certificates.",
                      rows(s.security)});
  sections.push_back({"limits", "limits.", "Bounds of one request.", rows(s.limits)});
  sections.push_back({"deadlines",
                      "deadlines.",
                      "Every wait has one, in milliseconds; what passes it is named.",
                      rows(s.deadlines)});
  sections.push_back({"recovery",
                      "recovery.",
                      "What follows on a fault. Requests always go on with the same tokens.",
                      rows(s.recovery)});
  sections.push_back({"generate",
                      "generate.",
                      "What a request gets where it does not say otherwise.",
                      rows(s.generate)});
  sections.push_back({"serve", "serve.", "The HTTP endpoint of the head.", rows(s.serve)});
  for (std::size_t i = 0; i < s.faults.size(); ++i)
    sections.push_back(
      {"fault",
       fmt::format("fault[{}].", i),
       "Something that goes wrong on purpose; one [[fault]] each, mostly none. The "
       "same file and seed go wrong in the same way twice; what happened is in the "
       "node's log, and in NAME.faults in its run folder.",
       rows(s.faults[i])});
  return sections;
}

} // namespace troupe
