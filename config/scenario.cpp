#include "config/scenario.hpp"

#include "config/section_reader.hpp"
#include "config/toml_reader.hpp"
#include "config/toml_screen.hpp"

#include <fmt/core.h>

namespace troupe {

namespace {

constexpr double many = 1 << 30;
constexpr double most_hosts = 65'536;
constexpr bounds counts{1, many};
constexpr bounds sizes{0, many};
constexpr bounds rates{0, 1e9, true};
constexpr bounds parts{0, 1, true};
constexpr bounds times{0, 1e9};

constexpr std::string_view smallest =
  "[model]\nshape = \"70B\"\n[[host]]\ncount = 8\ncores = 64\nmemory = \"512GiB\"\n"
  "read_gb_per_s = 300\ngflop_per_s = 3000";

std::vector<setting> rows(scenario_model& s) {
  return {
    {"path", path_slot{&s.path, {}}, "A model folder; its config.json is enough."},
    {"shape",
     choice{&s.shape, {"110M", "1.1B", "8B", "70B", "405B"}},
     "Sizes by name; 8B, 70B and 405B are those of Llama 3."},
    {"family", &s.family, "Of the sizes that follow: llama, mistral, qwen2 or qwen3."},
    {"layers", &s.layers, "The sizes themselves, without path and shape.", counts},
    {"hidden", &s.hidden, "Width of the residual stream.", counts},
    {"heads", &s.heads, "Query heads.", counts},
    {"kv_heads", &s.kv_heads, "Heads of keys and values; 0: as many as query heads.", sizes},
    {"head_dim", &s.head_dim, "0: hidden / heads.", sizes},
    {"ffn", &s.ffn, "Width of the feed-forward layer.", counts},
    {"vocabulary", &s.vocabulary, "Tokens that there are.", counts},
    {"stored", &s.stored, "How weights are stored, where no files say so."},
    {"dtype", &s.held_dtype, "How ranks hold them; \"auto\": as stored."},
    {"context", &s.context, "Tokens of one sequence at most; memory is planned for it.", counts},
  };
}

std::vector<setting> rows(scenario_host& s) {
  return {
    {"count", &s.count, "So many hosts of this kind.", {1, most_hosts}},
    {"per_rack", &s.per_rack, "Hosts of a rack; 0: all of them are in one.", {0, most_hosts}},
    {"measured", &s.measured, "They compute as this host does; then the figures are not needed."},
    {"cores", &s.cores, "Of each host.", {0, 65'536}},
    {"memory", byte_count{&s.memory_bytes}, "Of each host; its ranks share it."},
    {"ranks", &s.ranks, "On each host, each a process of its own.", {1, 1024}},
    {"threads", &s.threads, "Of each rank; 0: cores / ranks.", {0, 65'536}},
    {"read_gb_per_s", &s.read_gb_per_s, "Memory bandwidth of all cores, 10^9 bytes.", rates},
    {"gflop_per_s", &s.gflop_per_s, "Multiply-adds of all cores, two operations each.", rates},
    {"read_reached", &s.read_reached, "What the kernels reach of the bandwidth.", parts},
    {"flops_reached", &s.flops_reached, "What they reach of the multiply-adds.", parts},
    {"layer_us", &s.layer_us, "A layer beside its products: norms, and threads that meet.", times},
  };
}

std::vector<setting> rows(scenario_links& s) {
  return {
    {"process_us", &s.process_us, "Latency between ranks of one process, one way.", times},
    {"process_gb_per_s", &s.process_gb_per_s, "Their bandwidth.", rates},
    {"host_us", &s.host_us, "Between processes of one host.", times},
    {"host_gb_per_s", &s.host_gb_per_s, "Their bandwidth.", rates},
    {"rack_us", &s.rack_us, "Between hosts of one rack.", times},
    {"rack_gb_per_s", &s.rack_gb_per_s, "25 Gbit/s, less what headers take.", rates},
    {"across_us", &s.across_us, "Between racks.", times},
    {"across_gb_per_s", &s.across_gb_per_s, "10 Gbit/s, less what headers take.", rates},
    {"sum_us", &s.sum_us, "A sum over a tensor group of one host, which shares memory.", times},
    {"sum_gb_per_s", &s.sum_gb_per_s, "Bandwidth of such a sum.", rates},
  };
}

std::vector<setting> rows(scenario_parallel& s) {
  return {
    {"pipeline", &s.pipeline, "Stages; 0: what is best of those that fit.", {0, most_hosts}},
    {"tensor", &s.tensor, "Ranks of a stage; 0: what is best of those that fit.", {0, most_hosts}},
    {"best",
     choice{&s.best, {"throughput", "latency"}},
     "What sizes are chosen for: the answer tokens of all streams, or those of one."},
    {"wire_dtype", &s.wire, "Of boundaries between stages."},
  };
}

std::vector<setting> rows(scenario_load& s) {
  return {
    {"streams", &s.streams, "Clients; each asks again as soon as its answer is whole.", {1, 4096}},
    {"requests", &s.requests, "Of all clients together; 0: two a client.", {0, 65'536}},
    {"prompt", &s.prompt, "Tokens of a prompt.", counts},
    {"answer", &s.answer, "Tokens of an answer.", counts},
    {"spread", &s.spread, "Prompts and answers differ by up to this part of it.", {0, 0.95}},
    {"seed", &s.seed, "Of that. The same seed gives the same figures.", sizes},
  };
}

std::vector<setting> rows(scenario_schedule& s) {
  return {
    {"prefill_chunk", &s.prefill_chunk, "Tokens of one prompt in a step at most.", {1, 65'536}},
    {"step_tokens", &s.step_tokens, "Rows of a step at most.", {1, 65'536}},
    {"micro_batches", &s.micro_batches, "Steps in flight; 0: as many as stages.", {0, 65'536}},
  };
}

std::vector<setting> rows(scenario_failures& s) {
  return {
    {"hosts_per_week", &s.hosts_per_week, "How often one host goes away, a week.", times},
    {"processes_per_week", &s.processes_per_week, "How often one node ends by itself.", times},
    {"notice_s", &s.notice_s, "Until that is known.", times},
    {"join_s", &s.join_s, "From a node's start until it loads.", times},
    {"load_gb_per_s", &s.load_gb_per_s, "Weights that one host reads.", rates},
    {"spares", &s.spares, "Hosts that wait to take a place.", {0, most_hosts}},
    {"host_back_s", &s.host_back_s, "Until a host is there again, without a spare.", times},
  };
}

void demand(const scenario& made,
            bool good,
            std::string_view key,
            mistakes& found,
            std::string_view message) {
  if (!good)
    found.add(made.point_at(key, message));
}

void check_model(const scenario& made, mistakes& found) {
  const auto& model = made.model;
  const int ways =
    (model.path.empty() ? 0 : 1) + (model.shape.empty() ? 0 : 1) + (model.layers > 0 ? 1 : 0);
  if (ways != 1)
    found.add(made.point_at(ways == 0             ? "model"
                            : model.shape.empty() ? "model.path"
                                                  : "model.shape",
                            ways == 0 ? "[model] needs a path, a shape, or sizes (layers, hidden, "
                                        "heads, ffn, vocabulary)"
                                      : "[model] has more than one of path, shape and layers; one "
                                        "of them says what the model is"));
  if (model.layers == 0 || ways != 1)
    return;
  const std::pair<std::string_view, std::uint64_t> needed[] = {{"hidden", model.hidden},
                                                               {"heads", model.heads},
                                                               {"ffn", model.ffn},
                                                               {"vocabulary", model.vocabulary}};
  for (const auto& [key, value] : needed)
    demand(made,
           value > 0,
           "model.layers",
           found,
           fmt::format("a model of so many layers needs the key \"{}\" as well", key));
  if (model.heads > 0 && model.kv_heads > 0 && model.heads % model.kv_heads != 0)
    found.add(made.point_at("model.kv_heads",
                            fmt::format("{} heads are not a multiple of {} heads of keys and "
                                        "values",
                                        model.heads,
                                        model.kv_heads)));
}

void check_hosts(const scenario& made, mistakes& found) {
  for (std::size_t h = 0; h < made.hosts.size(); ++h) {
    const auto& host = made.hosts[h];
    const auto key = [&](std::string_view name) { return fmt::format("host[{}].{}", h, name); };
    const auto needs = [&](bool there, std::string_view name) {
      demand(made,
             there || host.measured,
             key(name),
             found,
             fmt::format("[[host]] {} needs \"{}\", or measured = true", h + 1, name));
    };
    needs(host.cores > 0, "cores");
    needs(host.read_gb_per_s > 0, "read_gb_per_s");
    needs(host.gflop_per_s > 0, "gflop_per_s");
    demand(made,
           host.memory_bytes > 0,
           key("memory"),
           found,
           fmt::format("[[host]] {} needs \"memory\", a size such as \"512GiB\"", h + 1));
  }
  if (made.host_count() > static_cast<std::uint64_t>(most_hosts))
    found.add(made.point_at("host[0].count",
                            fmt::format("{} hosts are more than the {} that can be simulated",
                                        made.host_count(),
                                        most_hosts)));
}

void check_load(const scenario& made, mistakes& found) {
  const auto most =
    static_cast<double>(made.load.prompt + made.load.answer) * (1 + made.load.spread);
  demand(made,
         most <= static_cast<double>(made.model.context),
         "load.prompt",
         found,
         fmt::format("a prompt of {} and an answer of {} tokens{} do not fit into a context "
                     "of {} (model.context)",
                     made.load.prompt,
                     made.load.answer,
                     made.load.spread > 0 ? " and their spread" : "",
                     made.model.context));
}

/// The [[host]]s; nullptr when there are none.
const toml_value::array* hosts_of(const toml_value& file) {
  const auto* found = file.find("host");
  const auto* list = found ? std::get_if<toml_value::array>(&found->content) : nullptr;
  return list && !list->empty() ? list : nullptr;
}

void read_tree(const toml_value& file, scenario& made, mistakes& found) {
  scenario example;
  example.hosts.resize(1);
  section_reader reader(made.file, sections_of(example), found);
  reader.check_names(file, "a scenario");
  const auto* hosts = hosts_of(file);
  if (!hosts)
    found.add(
      fmt::format("{}: there is no [[host]]; the smallest scenario is\n{}", made.file, smallest));
  else
    made.hosts.resize(hosts->size());
  std::size_t host = 0;
  for (const auto& section : sections_of(made)) {
    if (is_list(section.name))
      reader.read(section, (*hosts)[host++]);
    else if (const auto* table = file.find(section.name))
      reader.read(section, *table);
  }
  made.origins = reader.origins();
}

} // namespace

std::vector<setting_section> sections_of(scenario& which) {
  std::vector<setting_section> all{
    {"scenario", "scenario.", "What this is called.", {{"name", &which.name, "For titles."}}},
    {"model", "model.", "What is run: path, shape, or sizes.", rows(which.model)}};
  for (std::size_t h = 0; h < which.hosts.size(); ++h)
    all.push_back({"host",
                   fmt::format("host[{}].", h),
                   "Hosts of one kind, in the order in which they take ranks.",
                   rows(which.hosts[h])});
  all.push_back({"links", "links.", "How fast messages are.", rows(which.links)});
  all.push_back({"parallel", "parallel.", "How the model is cut.", rows(which.parallel)});
  all.push_back({"load", "load.", "What clients ask for.", rows(which.load)});
  all.push_back({"schedule", "schedule.", "As in a cluster file.", rows(which.schedule)});
  all.push_back(
    {"failures", "failures.", "What goes wrong, and what it takes.", rows(which.failures)});
  return all;
}

std::uint64_t scenario::host_count() const {
  std::uint64_t sum = 0;
  for (const auto& host : hosts)
    sum += host.count;
  return sum;
}

std::string scenario::point_at(std::string_view key, std::string_view message) const {
  const auto found = origins.find(key);
  return found == origins.end() ? fmt::format("{}: {}", file, message)
                                : point(found->second, message, "");
}

result<scenario> parse_scenario(std::string_view text, std::string_view name) {
  const auto screened = screen_toml(text, name);
  if (!screened)
    return screened.error();
  const auto tree = read_toml(*screened, name);
  if (!tree)
    return tree.error();
  mistakes found;
  scenario made;
  made.file = name;
  read_tree(*tree, made, found);
  if (found.none()) {
    check_model(made, found);
    check_hosts(made, found);
    check_load(made, found);
  }
  if (!found.none())
    return found.to_error();
  return made;
}

result<scenario> read_scenario(const std::filesystem::path& file) {
  const auto text = read_toml_file(file, "a scenario");
  if (!text)
    return text.error();
  return parse_scenario(*text, file.string());
}

} // namespace troupe
