#include "config/cluster_file.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <filesystem>

using namespace troupe;

namespace {

cluster_settings parsed(std::string_view text, std::vector<std::string> overrides = {}) {
  auto settings = parse_cluster_text(text, "dir/cluster.toml", overrides);
  BOOST_REQUIRE_MESSAGE(settings, (settings ? "" : settings.error().what));
  return *settings;
}

constexpr std::string_view smallest = "[model]\npath = \"demo\"\n[[node]]\nname = \"a\"\n";

setting_row row(const cluster_settings& settings, std::string_view key) {
  for (const auto& found : describe_settings(settings))
    if (found.key == key)
      return found;
  BOOST_FAIL("there is no setting " << key);
  return {};
}

std::string absolute(std::string_view path) {
  return (std::filesystem::current_path() / path).string();
}

} // namespace

BOOST_AUTO_TEST_CASE(the_smallest_file_has_every_default) {
  const auto s = parsed(smallest);
  BOOST_TEST(s.world() == 1u);
  BOOST_TEST(s.model.is_demo());
  BOOST_TEST(!s.model.held_dtype.has_value());
  BOOST_TEST(s.cluster.head == "a");
  BOOST_TEST(s.head_index() == 0u);
  BOOST_TEST(s.nodes.at(0).bind == "127.0.0.1");
  BOOST_TEST(s.nodes.at(0).advertise == "127.0.0.1");
  BOOST_TEST(s.on_one_host());
  for (const auto& found : describe_settings(s)) {
    const bool given = found.key == "model.path" || found.key == "node.a.name";
    BOOST_TEST((found.origin != "default") == given, found.key);
    BOOST_TEST(found.reason.size() > 10u, found.key);
  }
}

BOOST_AUTO_TEST_CASE(every_kind_of_value_is_read) {
  const auto s = parsed(R"(
[cluster]
log = "debug"
[model]
path = "models/x"
dtype = "bf16"
context = 4_096
allow_vocabulary_padding = true
[parallel]
pipeline = 2
wire_dtype = "f16"
layers = [[0, 4], [4, 6]]
[state]
memory = "1.5GiB"
[[node]]
name = "a"
memory = 1048576
devices = ["mlx5_0:1", "eth0"]
weight = 2
[[node]]
name = "b"
memory = "4GB"
model_path = "/srv/x"
[generate]
temperature = 0.7
top_p = 1
)");
  BOOST_TEST((s.cluster.log_level == log::level::debug));
  BOOST_TEST(s.model.path == absolute("dir/models/x"));
  BOOST_TEST((s.model.held_dtype == dtype::bf16));
  BOOST_TEST(s.model.context_tokens == 4096u);
  BOOST_TEST(s.model.allow_vocabulary_padding);
  BOOST_TEST((s.parallel.wire_dtype == dtype::f16));
  BOOST_TEST((s.parallel.layers == std::vector<range>{{0, 4}, {4, 6}}));
  BOOST_TEST(s.state.memory_bytes == 3ull << 29);
  BOOST_TEST(s.nodes[0].memory_bytes == 1048576u);
  BOOST_TEST(s.nodes[1].memory_bytes == 4'000'000'000u);
  BOOST_TEST((s.nodes[0].devices == std::vector<std::string>{"mlx5_0:1", "eth0"}));
  BOOST_TEST(s.nodes[0].weight == 2.0);
  BOOST_TEST(s.model_path_of(s.nodes[0]) == absolute("dir/models/x"));
  BOOST_TEST(s.model_path_of(s.nodes[1]) == "/srv/x");
  BOOST_TEST(s.generate.temperature == 0.7);
  BOOST_TEST(s.generate.top_p == 1.0);
}

BOOST_AUTO_TEST_CASE(a_folder_called_demo_can_be_named) {
  const auto s = parsed("[model]\npath = \"./demo\"\n[[node]]\nname = \"a\"\n");
  BOOST_TEST(!s.model.is_demo());
  BOOST_TEST(s.model.path == absolute("dir/demo"));
}

BOOST_AUTO_TEST_CASE(sizes_are_written_back_as_they_can_be_read) {
  for (const auto* size : {"\"auto\"", "\"1KiB\"", "\"512MiB\"", "\"3GiB\"", "12345", "1"}) {
    const auto s = parsed(smallest, {std::string{"state.memory="} + size});
    BOOST_TEST(row(s, "state.memory").value == size);
  }
}

BOOST_AUTO_TEST_CASE(windows_line_ends_and_a_byte_order_mark_are_fine) {
  const auto s = parsed("\xEF\xBB\xBF[model]\r\npath = \"demo\"\r\n[[node]]\r\nname = \"a\"\r\n");
  BOOST_TEST(s.nodes.at(0).name == "a");
  BOOST_TEST(row(s, "node.a.name").origin == "dir/cluster.toml:4");
}

BOOST_AUTO_TEST_CASE(the_command_line_wins_over_the_file) {
  const auto s = parsed(smallest,
                        {"model.context=4096",
                         "node.a.threads=2",
                         "node[0].pin=true",
                         "state.memory=2GiB",
                         "model.path=other",
                         "deadlines.join_ms=7",
                         "deadlines.join_ms=8",
                         "parallel.layers=[[0, 6]]"});
  BOOST_TEST(s.model.context_tokens == 4096u);
  BOOST_TEST(s.nodes[0].threads == 2u);
  BOOST_TEST(s.nodes[0].pin);
  BOOST_TEST(s.state.memory_bytes == 2ull << 30);
  BOOST_TEST(s.model.path
             == absolute("other")); // where the command was typed, not where the file is
  BOOST_TEST(s.deadlines.join_ms == 8u);
  BOOST_TEST((s.parallel.layers == std::vector<range>{{0, 6}}));
  BOOST_TEST(row(s, "model.context").origin == "--set model.context=4096");
  BOOST_TEST(row(s, "node.a.threads").value == "2");
  BOOST_TEST(row(s, "cluster.name").origin == "default");
  BOOST_TEST(row(s, "node.a.name").origin == "dir/cluster.toml:4");
}

// Each documented key: give it a value that is not the default and find it in the effective
// settings.
BOOST_AUTO_TEST_CASE(A09_every_key_has_an_effect) {
  const auto before = parsed(smallest);
  std::size_t changed = 0;
  for (const auto& setting : describe_settings(before)) {
    if (setting.key == "node.a.name" || setting.key == "node.a.spare"
        || setting.key == "node.a.device" || setting.key == "parallel.data"
        || setting.key == "cluster.head")
      continue; // Only one value is possible in this file; their mistakes are tested elsewhere.
    std::string value = "\"other\"";
    if (setting.value == "false" || setting.value == "true")
      value = setting.value == "true" ? "false" : "true";
    else if (setting.value == "[]")
      value = setting.key == "parallel.layers" ? "[[0, 1]]" : "[\"x\"]";
    else if (setting.value == "\"auto\"")
      value = setting.key == "model.dtype" ? "\"f16\"" : "\"7MiB\"";
    else if (setting.key == "cluster.log")
      value = "\"warn\"";
    else if (setting.key == "parallel.wire_dtype" || setting.key == "state.dtype")
      value = "\"bf16\"";
    else if (setting.key.ends_with("bind") || setting.key.ends_with("advertise"))
      value = "\"127.0.0.9\"";
    else if (setting.value.find('.') != std::string::npos && setting.value[0] != '"')
      value = "0.5";
    else if (setting.value[0] != '"')
      value = setting.key.starts_with("deadlines") ? "30000"
              : setting.key.starts_with("serve.")  ? "700"
                                                   : "3";
    if (setting.key == "serve.unknown_parameters")
      value = "\"ignore\"";
    std::vector<std::string> overrides{setting.key + "=" + value};
    if (setting.key.starts_with("security.") && setting.key != "security.secret_file")
      overrides = {"security.certificate=other", "security.key=other", "security.authority=other"};
    if (setting.key == "serve.certificate" || setting.key == "serve.key")
      overrides = {"serve.certificate=other", "serve.key=other"};
    if (setting.key == "serve.origins")
      overrides = {"serve.origins=[\"https://a.example\"]"};
    if (setting.key == "parallel.pipeline" || setting.key == "parallel.tensor")
      overrides.push_back("node.a.ranks=3");
    if (setting.key == "parallel.least_stages")
      overrides.insert(overrides.end(), {"node.a.ranks=3", "parallel.pipeline=3"});
    if (setting.key == "limits.max_new_tokens")
      overrides.push_back("generate.max_tokens=2");
    if (setting.key == "schedule.step_tokens")
      overrides.push_back("schedule.prefill_chunk=2");
    if (setting.key == "node.a.ranks")
      overrides.push_back("parallel.tensor=3");
    const auto after = parsed(smallest, overrides);
    BOOST_TEST(row(after, setting.key).value != setting.value, setting.key);
    BOOST_TEST(row(after, setting.key).origin.starts_with("--set "), setting.key);
    ++changed;
  }
  BOOST_TEST(changed > 45u);
}

BOOST_AUTO_TEST_CASE(later_checks_can_point_at_a_key) {
  const auto s = parsed(smallest, {"model.context=4096"});
  BOOST_TEST(s.point_at("node[0].name", "is taken", "here")
             == "dir/cluster.toml:4: is taken\n   |\n 4 | name = \"a\"\n   |        ^^^ here");
  BOOST_TEST(
    s.point_at("model.context", "too much", "2048").find("--set model.context=4096: too much")
    == 0u);
  BOOST_TEST(s.point_at("state.memory", "too much", "1GiB") == "dir/cluster.toml: too much (1GiB)");
}

BOOST_AUTO_TEST_CASE(nodes_take_consecutive_ranks_in_the_order_of_the_file) {
  const auto s = parsed(R"(
[model]
path = "demo"
[parallel]
pipeline = 2
tensor = 3
[[node]]
name = "a"
ranks = 2
[[node]]
name = "b"
ranks = 3
[[node]]
name = "c"
)");
  const auto ranks = place_ranks(s);
  BOOST_REQUIRE(ranks.size() == 6u);
  const std::vector<std::pair<unsigned, unsigned>> expected{
    {0, 0}, {0, 1}, {1, 0}, {1, 1}, {1, 2}, {2, 0}};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    BOOST_TEST(number(ranks[i].rank) == i);
    BOOST_TEST(number(ranks[i].node) == expected[i].first);
    BOOST_TEST(ranks[i].index_in_node == expected[i].second);
  }
}
