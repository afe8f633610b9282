#include "actors/cli/plan_report.hpp"
#include "actors/cli/config.hpp"
#include "compute/weights/json_object.hpp"
#include "tests/paths.hpp"
#include "tests/support/process.hpp"
#include "tests/support/tiny_model.hpp"
#include "tests/support/xml_shape.hpp"
#include "transport/frame.hpp"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

using namespace troupe;
using namespace troupe::cli;
using tests::is_balanced;
using tests::tiny_model;

namespace {

using clock = std::chrono::steady_clock;

const std::string program = TROUPE_BINARY_DIR "/troupe";

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A model folder, and a cluster file beside it that splits it 2 x 2 over two nodes.
class small_cluster {
public:
  explicit small_cluster(const compute::random_model& wanted = {}, const std::string& more = "")
    : model_(wanted) {
    tests::write_text(file(),
                      "[cluster]\nname = \"small\"\n[model]\npath = \".\"\n" + more
                        + "[parallel]\npipeline = 2\ntensor = 2\nwire_dtype = \"bf16\"\n"
                          "[security]\nsecret_file = \"not-here\"\n"
                          "[[node]]\nname = \"left\"\nranks = 2\nport = 7000\n"
                          "[[node]]\nname = \"right\"\nranks = 2\nadvertise = \"192.0.2.1\"\n");
  }

  std::filesystem::path file() const { return model_.folder() / "cluster.toml"; }

  plan_report report(const std::vector<std::string>& overrides = {}) const {
    auto settings = read_cluster_file(file(), overrides, security_files::ignore);
    BOOST_REQUIRE_MESSAGE(settings, (settings ? "" : settings.error().what));
    auto made = make_plan_report(*settings);
    BOOST_REQUIRE_MESSAGE(made, (made ? "" : made.error().what));
    return *made;
  }

private:
  tiny_model model_;
};

struct outcome {
  int code = -1;
  std::string text; ///< Output and errors.
  std::chrono::milliseconds took{};
};

outcome run(const std::vector<std::string>& command) {
  const auto start = clock::now();
  auto running = test::process::run(command, {}, true);
  outcome seen;
  for (const auto& line : running.hear_all(std::chrono::seconds{20}))
    seen.text += line + "\n";
  const auto ended = running.wait(std::chrono::seconds{5});
  BOOST_REQUIRE(ended);
  BOOST_TEST(ended->exited);
  seen.code = ended->code;
  seen.took = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - start);
  return seen;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++found;
  return found;
}

} // namespace

BOOST_AUTO_TEST_CASE(the_table_says_who_holds_what) {
  const small_cluster cluster({.layers = 5, .hidden = 64, .heads = 4, .kv_heads = 2});
  const auto text = plan_text(cluster.report());
  const auto header = fmt::format("2 links x 128 B a row (64 x bf16), and a header of {} B a step",
                                  transport::wire_header_bytes);
  for (const auto& part : std::vector<std::string>{"cluster small",
                                                   "5 layers, hidden 64, 4 heads of 16, 2 KV heads",
                                                   "2 stages x 2 tensor ranks = 4 ranks",
                                                   header,
                                                   "192.0.2.1",
                                                   "unknown"})
    BOOST_TEST(holds(text, part), "\"" << part << "\" is not in\n" << text);
  BOOST_TEST(!holds(text, " \n"), "a line ends with blanks");
}

BOOST_AUTO_TEST_CASE(the_digest_tells_models_apart_and_not_folders) {
  const auto digest = [](const compute::random_model& wanted) {
    return small_cluster(wanted).report().model_digest;
  };
  BOOST_TEST(digest({}) == digest({}));
  BOOST_TEST(digest({}) != digest({.ffn = 160}));
}

BOOST_AUTO_TEST_CASE(json_has_everything_and_adds_up) {
  const small_cluster cluster({.layers = 5});
  const auto report = cluster.report();
  const auto parsed = compute::json_object::parse(plan_json(report), "plan");
  BOOST_REQUIRE(parsed);
  for (const auto* key : {"cluster",
                          "file",
                          "fits",
                          "model",
                          "parallel",
                          "state",
                          "stages",
                          "ranks",
                          "boundaries",
                          "nodes"})
    BOOST_TEST(parsed->has(key), key);
  BOOST_TEST(parsed->mentions("refusal"));
  BOOST_TEST(parsed->flag_or("fits", false));
  const auto model = parsed->section("model");
  BOOST_TEST(model.size("layers") == 5u);
  BOOST_TEST(model.text_or("digest", "") == report.model_digest);
  BOOST_TEST(parsed->section("state").size("pages") == report.plan.pages);
  const auto text = plan_json(report);
  BOOST_TEST(count(text, "\"rank\":") == 4u);
  BOOST_TEST(count(text, fmt::format("\"header_bytes\": {}", transport::wire_header_bytes)) == 1u);
  BOOST_TEST(count(text, "\"budget_bytes\": null") == 1u); // the node elsewhere
}

BOOST_AUTO_TEST_CASE(the_picture_is_one_file_and_drawn_to_scale) {
  const small_cluster cluster({.layers = 5});
  auto report = cluster.report();
  report.cluster = "<a&\"b>\x01\xff";
  const auto svg = plan_svg(report);
  BOOST_TEST(is_balanced(svg));
  BOOST_TEST(holds(svg, "&lt;a&amp;&quot;b&gt;??"));
  BOOST_TEST(count(svg, "http") == 1u, "only the name space may look like an address");
  BOOST_TEST(!holds(svg, "url("));
  BOOST_TEST(!holds(svg, "nan"));
  BOOST_TEST(!holds(svg, "inf"));
  BOOST_TEST(holds(svg, "prefers-color-scheme: dark"));
  for (const auto* part : {">rank 0<", ">rank 3<", ">node left<", ">stage 1: layers 3-4<"})
    BOOST_TEST(holds(svg, part), part);
  BOOST_TEST(count(svg, "class=\"link head\"") == 2u); // one arrow for each tensor rank
}

BOOST_AUTO_TEST_CASE(a_plan_works_on_a_desk_without_the_secret) {
  const small_cluster cluster;
  const auto seen = run({program, "plan", cluster.file()});
  BOOST_TEST(seen.code == 0, seen.text);
  BOOST_TEST(holds(seen.text, "cluster small"), seen.text);
  const auto config = run({program, "config", cluster.file()});
  BOOST_TEST(config.code == 0, config.text);
}

BOOST_AUTO_TEST_CASE(a_picture_that_cannot_be_written_is_an_error) {
  const small_cluster cluster;
  const auto there = (cluster.file().parent_path() / "plan.svg").string();
  BOOST_TEST(run({program, "plan", cluster.file(), "--svg", there}).code == 0);
  BOOST_TEST(holds(tests::read_text(there), "</svg>"));
  const auto seen = run({program, "plan", cluster.file(), "--svg", "/nowhere/plan.svg"});
  BOOST_TEST(seen.code == 3);
  BOOST_TEST(holds(seen.text, "/nowhere/plan.svg cannot be written"), seen.text);
}

BOOST_AUTO_TEST_CASE(A01_the_program_refuses_within_a_second) {
  const small_cluster cluster({.heads = 4});
  const auto seen = run({program,
                         "plan",
                         cluster.file(),
                         "--set",
                         "parallel.tensor=5",
                         "--set",
                         "node.left.ranks=5",
                         "--set",
                         "node.right.ranks=5"});
  BOOST_TEST(seen.code == 2);
  BOOST_TEST(holds(seen.text, "tensor size 5"), seen.text);
  BOOST_TEST(holds(seen.text, "1 to 4 would work"), seen.text);
  BOOST_TEST(seen.took.count() < 1000);
}

BOOST_AUTO_TEST_CASE(B27_a_long_context_is_shown_and_refused_before_memory_is_taken) {
  // 8 KiB of state a token on each rank of 512 MiB: 1 GiB for the context of 131072.
  const small_cluster cluster(
    {.layers = 8, .hidden = 256, .heads = 4, .kv_heads = 4, .context = 131'072});
  const auto limited = [&](const std::string& more) {
    return run({"/bin/sh",
                "-c",
                fmt::format(
                  "ulimit -v 524288; exec {} plan {} {}", program, cluster.file().string(), more)});
  };
  const auto seen = limited("");
  BOOST_TEST(seen.code == 4, seen.text);
  BOOST_TEST(holds(seen.text, "DOES NOT FIT: 4096 pages"), seen.text);
  BOOST_TEST(holds(seen.text, "131072 tokens"), seen.text);
  BOOST_TEST(holds(seen.text, "GiB are free"), seen.text);
  BOOST_TEST(seen.took.count() < 5000);
  const auto capped = limited("--set model.context=2048 --json");
  BOOST_TEST(capped.code == 0, capped.text);
  BOOST_TEST(holds(capped.text, "\"fits\": true"), capped.text);
}

BOOST_AUTO_TEST_CASE(E19_a_budget_below_the_need_is_the_exit_code_of_memory) {
  const small_cluster cluster;
  const auto seen =
    run({program, "plan", cluster.file(), "--json", "--set", "node.right.memory=1MiB"});
  BOOST_TEST(seen.code == 4);
  BOOST_TEST(holds(seen.text, "\"fits\": false"), seen.text);
  BOOST_TEST(holds(seen.text, "node 'right' needs"), seen.text);
}

BOOST_AUTO_TEST_CASE(B29_a_file_is_missed_only_where_a_node_of_this_host_needs_it) {
  const small_cluster cluster({.layers = 6, .files = 6});
  const auto folder = cluster.file().parent_path();
  const auto index = tests::read_text(folder / "model.safetensors.index.json");
  const auto file_of = [&](const std::string& tensor) {
    const auto at = index.find("model-", index.find("\"" + tensor + "\":"));
    return index.substr(at, index.find('"', at) - at);
  };
  const auto far = file_of("model.layers.5.mlp.down_proj.weight"); // of the node elsewhere
  const auto near = file_of("model.layers.0.mlp.down_proj.weight");
  BOOST_REQUIRE(far != near);
  std::filesystem::remove(folder / far);
  const auto without_far = run({program, "plan", cluster.file(), "--json"});
  BOOST_TEST(without_far.code == 0, without_far.text);
  BOOST_TEST(holds(without_far.text, "\"missing\": null"), without_far.text);
  std::filesystem::remove(folder / near);
  const auto without_near = run({program, "plan", cluster.file(), "--json"});
  BOOST_TEST(without_near.code == 3, without_near.text);
  BOOST_TEST(holds(without_near.text, "troupe: error: node 'left', rank 0: "), without_near.text);
  BOOST_TEST(holds(without_near.text, near), without_near.text);
  BOOST_TEST(holds(without_near.text, "\"missing\": \"node 'left', rank 0: "));
}

BOOST_AUTO_TEST_CASE(A19_the_sum_is_printed_by_the_plan) {
  const small_cluster cluster;
  const auto seen = run({program, "plan", cluster.file(), "--set", "node.right.ranks=1"});
  BOOST_TEST(seen.code == 2);
  BOOST_TEST(holds(seen.text, "2 nodes with 3 ranks in all"), seen.text);
  BOOST_TEST(holds(seen.text, "needs 4"), seen.text);
}

BOOST_AUTO_TEST_CASE(a_budget_above_what_is_free_is_a_warning) {
  const small_cluster cluster({.layers = 4});
  auto report = cluster.report();
  BOOST_TEST(plan_warnings(report).empty());
  report.found_bytes = report.plan.nodes[0].needed_bytes - 1;
  BOOST_TEST(plan_warnings(report).size() == 1u);
}

BOOST_AUTO_TEST_CASE(config_lines_name_value_origin_and_reason) {
  const std::vector<setting_row> rows{
    {"model.path", "\"/a/rather/long/path/that/is/wider/than/a/column\"", "c.toml:2", "Where."},
    {"state.max_sequences", "8", "default", "Because."}};
  BOOST_TEST(config_text(rows)
             == "model.path          = \"/a/rather/long/path/that/is/wider/than/a/column\"  # "
                "c.toml:2 - Where.\n"
                "state.max_sequences = 8  # default - Because.\n");
  const auto json = config_json(rows);
  BOOST_TEST(holds(json, "\"value\": \"8\""));
  BOOST_TEST(holds(json, "\"origin\": \"c.toml:2\""));
}

BOOST_AUTO_TEST_CASE(config_shows_every_setting_of_every_node) {
  const small_cluster cluster;
  const auto seen = run({program, "config", cluster.file(), "--set", "node.right.threads=3"});
  BOOST_TEST(seen.code == 0);
  BOOST_TEST(holds(seen.text, "node.right.threads"), seen.text);
  BOOST_TEST(holds(seen.text, "--set node.right.threads=3"), seen.text);
  BOOST_TEST(holds(seen.text, "node.left.threads"), seen.text);
  BOOST_TEST(holds(seen.text, "cluster.toml:2 - "), seen.text);
}
