#include "actors/plan/plan.hpp"
#include "compute/batch.hpp"
#include "config/cluster_file.hpp"
#include "tests/support/tiny_model.hpp"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <chrono>

using namespace troupe;
using namespace troupe::actors;
using tests::tiny_model;

namespace {

constexpr std::size_t plenty = std::size_t{1} << 40;

cluster_settings settings_of(const tiny_model& model, const std::string& rest) {
  const auto text = fmt::format("[model]\npath = \"{}\"\n{}", model.folder().string(), rest);
  auto settings = parse_cluster_text(text, "plan.toml");
  BOOST_REQUIRE_MESSAGE(settings, (settings ? "" : settings.error().what));
  return *settings;
}

/// One node with all ranks of a shape.
std::string shaped(std::size_t pipeline, std::size_t tensor, const std::string& node = "") {
  return fmt::format(
    "[parallel]\npipeline = {}\ntensor = {}\n[[node]]\nname = \"a\"\nranks = {}\n{}",
    pipeline,
    tensor,
    pipeline * tensor,
    node);
}

cluster_plan planned(const tiny_model& model, const std::string& rest) {
  auto plan = make_plan(settings_of(model, rest), *model.open(), plenty);
  BOOST_REQUIRE_MESSAGE(plan, (plan ? "" : plan.error().what));
  return *plan;
}

error refused(const tiny_model& model, const std::string& rest, std::size_t memory = plenty) {
  auto plan = make_plan(settings_of(model, rest), *model.open(), memory);
  BOOST_REQUIRE_MESSAGE(!plan, "a plan that cannot work was made");
  return plan.error();
}

void must_say(const error& what, std::initializer_list<const char*> parts) {
  for (const auto* part : parts)
    BOOST_TEST(what.what.find(part) != std::string::npos,
               "\"" << what.what << "\" does not say \"" << part << "\"");
}

std::vector<std::size_t> sizes_of(const std::vector<range>& ranges) {
  std::vector<std::size_t> sizes;
  for (const auto& one : ranges)
    sizes.push_back(one.size());
  return sizes;
}

} // namespace

BOOST_AUTO_TEST_CASE(A01_eight_kv_heads_run_uneven_on_five_ranks) {
  const tiny_model model({.hidden = 128, .heads = 16, .kv_heads = 8, .ffn = 96, .vocabulary = 257});
  const auto plan = planned(model, shaped(1, 5));
  std::vector<std::size_t> heads;
  range before;
  for (const auto& rank : plan.ranks) {
    const auto& shard = rank.shard;
    heads.push_back(shard.heads.size());
    BOOST_TEST(shard.heads.begin == before.end);
    before = shard.heads;
    // Two query heads share a KV head: those of the first and the last query head, and all between.
    BOOST_TEST(shard.kv_heads.begin == shard.heads.begin / 2);
    BOOST_TEST(shard.kv_heads.end == (shard.heads.end - 1) / 2 + 1);
  }
  BOOST_TEST(heads == (std::vector<std::size_t>{4, 3, 3, 3, 3}), boost::test_tools::per_element());
  BOOST_TEST(before.end == 16u);
}

BOOST_AUTO_TEST_CASE(A01_more_ranks_than_heads_is_refused_with_key_number_and_sizes_that_work) {
  const tiny_model model({.heads = 4});
  const auto start = std::chrono::steady_clock::now();
  const auto why = refused(model, shaped(1, 5));
  BOOST_TEST((std::chrono::steady_clock::now() - start < std::chrono::seconds{1}));
  BOOST_TEST(to_string(why.code) == to_string(errc::invalid_config));
  must_say(why, {"plan.toml:5", "tensor = 5", "tensor size 5", "4 heads", "1 to 4 would work"});
}

BOOST_AUTO_TEST_CASE(A05_five_layers_are_dealt_out_with_the_remainder_in_front) {
  // A head that weighs next to nothing, and an embedding of which a row weighs even less.
  const tiny_model model({.layers = 5, .hidden = 256, .vocabulary = 64});
  const std::vector<std::vector<std::size_t>> expected{
    {5}, {3, 2}, {2, 2, 1}, {2, 1, 1, 1}, {1, 1, 1, 1, 1}};
  for (std::size_t stages = 1; stages <= 5; ++stages)
    BOOST_TEST(sizes_of(planned(model, shaped(stages, 1)).stages) == expected[stages - 1],
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(A05_a_stage_without_a_layer_is_refused_by_name) {
  const tiny_model model({.layers = 5});
  const auto why = refused(model, shaped(6, 1));
  BOOST_TEST(to_string(why.code) == to_string(errc::invalid_config));
  must_say(why, {"pipeline = 6", "6 stages for 5 layers", "stage 5", "1 to 5 stages would work"});
}

BOOST_AUTO_TEST_CASE(A17_weights_of_nodes_deal_the_layers_out) {
  const tiny_model model({.layers = 12, .vocabulary = 64});
  const auto nodes = [](const char* first, const char* second) {
    return fmt::format("[parallel]\npipeline = 2\n[[node]]\nname = \"a\"\nweight = {}\n"
                       "[[node]]\nname = \"b\"\nweight = {}\n",
                       first,
                       second);
  };
  using sizes = std::vector<std::size_t>;
  const auto split = [&](const char* first, const char* second) {
    return sizes_of(planned(model, nodes(first, second)).stages);
  };
  BOOST_TEST(split("1", "1") == (sizes{6, 6}), boost::test_tools::per_element());
  BOOST_TEST(split("2", "1") == (sizes{8, 4}), boost::test_tools::per_element());
  BOOST_TEST(split("0.5", "0.25") == (sizes{8, 4}), boost::test_tools::per_element());
  BOOST_TEST(split("1", "3") == (sizes{3, 9}), boost::test_tools::per_element());
  // A node that hardly computes still gets a layer: its stage is not empty.
  BOOST_TEST(split("1000", "0.001") == (sizes{11, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(A17_a_tensor_group_over_two_nodes_is_as_fast_as_the_slower_one) {
  const tiny_model model({.layers = 12, .vocabulary = 64});
  const auto plan = planned(model,
                            "[parallel]\npipeline = 2\ntensor = 2\n"
                            "[[node]]\nname = \"a\"\nranks = 1\nweight = 4\n"
                            "[[node]]\nname = \"b\"\nranks = 1\nweight = 1\n"
                            "[[node]]\nname = \"c\"\nranks = 2\nweight = 1\n");
  BOOST_TEST((plan.stages == std::vector<range>{{0, 6}, {6, 12}}));
}

BOOST_AUTO_TEST_CASE(A17_a_weight_beside_explicit_layers_is_refused) {
  const tiny_model model({.layers = 6});
  const auto why = refused(model,
                           "[parallel]\npipeline = 2\nlayers = [[0, 4], [4, 6]]\n"
                           "[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\nweight = 2\n");
  must_say(why, {"node 'b' has weight 2", "parallel.layers", "plan.toml:10"});
}

BOOST_AUTO_TEST_CASE(A17_explicit_layers_are_taken_and_must_cover_the_model) {
  const tiny_model model({.layers = 6});
  const auto nodes = "[[node]]\nname = \"a\"\nranks = 2\n";
  const auto plan =
    planned(model, fmt::format("[parallel]\npipeline = 2\nlayers = [[0, 5], [5, 6]]\n{}", nodes));
  BOOST_TEST((plan.stages == std::vector<range>{{0, 5}, {5, 6}}));
  const auto kept = plan.pages * 32 * plan.boundary_row_bytes; // for a next stage that is lost
  BOOST_TEST(plan.ranks[0].state_bytes == 5 * plan.ranks[1].state_bytes + kept);
  for (const auto* end : {"5", "7"}) {
    const auto why = refused(
      model, fmt::format("[parallel]\npipeline = 2\nlayers = [[0, 3], [3, {}]]\n{}", end, nodes));
    must_say(why, {"layers =", "but the model has 6 layers", end});
  }
}

BOOST_AUTO_TEST_CASE(every_stored_byte_has_one_owner) {
  const tiny_model model({.layers = 5, .hidden = 72, .heads = 9, .kv_heads = 3, .vocabulary = 101});
  const auto whole = planned(model, shaped(1, 1)).ranks[0].shard.stored_bytes;
  std::size_t pipeline = 0;
  for (const auto& rank : planned(model, shaped(3, 1)).ranks)
    pipeline += rank.shard.stored_bytes;
  BOOST_TEST(pipeline == whole);
  // A tensor split of whole KV groups repeats the norms, and nothing else.
  std::size_t tensor = 0;
  for (const auto& rank : planned(model, shaped(1, 3)).ranks)
    tensor += rank.shard.stored_bytes;
  const std::size_t norms = (2 * 5 + 1) * 72 * sizeof(float);
  BOOST_TEST(tensor == whole + 2 * norms);
}

BOOST_AUTO_TEST_CASE(state_is_the_same_number_of_pages_on_every_rank) {
  const tiny_model model({.layers = 3, .hidden = 64, .heads = 4, .kv_heads = 2, .context = 100});
  const auto plan = planned(model, "[state]\nmax_sequences = 3\n" + shaped(2, 1));
  BOOST_TEST(plan.pages == 3 * 4u); // 100 tokens take 4 pages of 32
  // Keys and values, f32, 2 heads of 16, 32 positions a page, by layers.
  const std::size_t layer = 2 * sizeof(float) * 2 * 16 * 32;
  // The rows that the first stage sent, kept for a next one that is lost.
  const std::size_t kept = 64 * sizeof(float) * 32;
  BOOST_TEST(plan.ranks[0].state_bytes == 12 * (2 * layer + kept));
  BOOST_TEST(plan.ranks[1].state_bytes == 12 * 1 * layer);
  const auto bare = planned(
    model, "[state]\nmax_sequences = 3\n[recovery]\nkeep_boundaries = false\n" + shaped(2, 1));
  BOOST_TEST(bare.ranks[0].state_bytes == 12 * 2 * layer);
}

BOOST_AUTO_TEST_CASE(B27_state_that_does_not_fit_is_refused_with_both_numbers) {
  const tiny_model model({.layers = 4, .hidden = 256, .kv_heads = 4, .context = 131'072});
  // 4 layers x 2 x 4 heads x 64 x 4 B = 8 KiB a token: 1 GiB for one sequence.
  const auto why = refused(model, shaped(1, 1), std::size_t{512} << 20);
  BOOST_TEST(to_string(why.code) == to_string(errc::out_of_memory));
  must_say(why, {"131072 tokens", "1.000 GiB", "0.500 GiB are free", "a smaller model.context"});
  // The same with a context that fits: fewer sequences at once, but it runs.
  const auto settings = settings_of(model, shaped(1, 1));
  auto smaller = settings;
  smaller.model.context_tokens = 8192;
  auto plan = make_plan(smaller, *model.open(), std::size_t{512} << 20);
  BOOST_REQUIRE(plan);
  BOOST_TEST(plan->pages < compute::pages_for(8192) * smaller.state.max_sequences);
  BOOST_TEST(plan->pages >= compute::pages_for(8192));
  BOOST_TEST(plan->nodes[0].needed_bytes <= std::size_t{512} << 20);
}

BOOST_AUTO_TEST_CASE(B27_a_hostile_context_does_not_wrap_around) {
  const tiny_model model({.layers = 4, .context = 2048});
  model.edit_config("\"max_position_embeddings\": 2048", "\"max_position_embeddings\": 2147483648");
  const auto why = refused(model, "[state]\nmax_sequences = 1000000000\n" + shaped(1, 1));
  must_say(why, {"2147483648 tokens"});
}

BOOST_AUTO_TEST_CASE(E19_a_budget_below_the_need_is_refused_and_a_larger_one_is_kept) {
  const tiny_model model({.layers = 4, .hidden = 128, .ffn = 512, .context = 4096});
  const auto why = refused(model, shaped(1, 2, "memory = \"1MiB\"\n"));
  BOOST_TEST(to_string(why.code) == to_string(errc::out_of_memory));
  must_say(why, {"node 'a' needs", "0.001 GiB are its budget", "memory = \"1MiB\""});
  const auto plan = planned(model, shaped(1, 2, "memory = \"48MiB\"\n"));
  BOOST_TEST(plan.nodes[0].budget_bytes == std::size_t{48} << 20);
  BOOST_TEST(plan.nodes[0].needed_bytes <= plan.nodes[0].budget_bytes);
  BOOST_TEST(plan.nodes[0].least_bytes <= plan.nodes[0].needed_bytes);
  BOOST_TEST(plan.pages < compute::pages_for(4096) * 8); // capped, not refused
}

BOOST_AUTO_TEST_CASE(E19_state_memory_caps_every_rank) {
  const tiny_model model({.layers = 4, .hidden = 64, .heads = 4, .kv_heads = 4, .context = 1024});
  // 4 layers x 2 x 64 x 4 B = 2 KiB a token, 64 KiB a page, 2 MiB a sequence.
  const auto plan = planned(model, "[state]\nmemory = \"5MiB\"\n" + shaped(1, 1));
  BOOST_TEST(plan.pages == 80u);
  const auto why = refused(model, "[state]\nmemory = \"1MiB\"\n" + shaped(1, 1));
  must_say(why, {"1024 tokens", "0.002 GiB of state on rank 0", "state.memory is 0.001 GiB"});
}

BOOST_AUTO_TEST_CASE(a_plan_that_does_not_fit_shows_what_one_sequence_needs) {
  const tiny_model model({.context = 1024});
  const auto settings = settings_of(model, shaped(1, 1, "memory = 4096\n"));
  auto plan = lay_out(settings, *model.open());
  BOOST_REQUIRE(plan);
  BOOST_TEST(!fit_state(settings, *plan, plenty));
  BOOST_TEST(plan->pages == 32u);
  BOOST_TEST(plan->nodes[0].needed_bytes == plan->ranks[0].total_bytes());
  BOOST_TEST(plan->nodes[0].least_bytes == plan->nodes[0].needed_bytes);
  BOOST_TEST(plan->nodes[0].budget_bytes == 4096u);
}

BOOST_AUTO_TEST_CASE(memory_of_other_hosts_is_unknown_and_that_of_this_one_is_shared) {
  const tiny_model model({.layers = 3});
  const auto settings = settings_of(model,
                                    "[parallel]\npipeline = 3\n"
                                    "[[node]]\nname = \"a\"\nport = 7000\n"
                                    "[[node]]\nname = \"b\"\n"
                                    "[[node]]\nname = \"c\"\nadvertise = \"192.0.2.1\"\n"
                                    "[security]\nsecret_file = \"none\"\n");
  const auto plan = make_plan(settings, *model.open(), std::size_t{1} << 30);
  BOOST_REQUIRE_MESSAGE(plan, (plan ? "" : plan.error().what));
  BOOST_TEST(plan->nodes[0].budget_bytes == std::size_t{1} << 29);
  BOOST_TEST(plan->nodes[1].budget_bytes == std::size_t{1} << 29);
  BOOST_TEST(plan->nodes[0].is_here);
  BOOST_TEST(!plan->nodes[2].is_here);
  BOOST_TEST(!plan->nodes[2].budget_known);
}

BOOST_AUTO_TEST_CASE(traffic_is_counted_by_row) {
  const tiny_model model({.layers = 4, .hidden = 64, .heads = 4, .vocabulary = 200});
  const auto alone = planned(model, shaped(2, 1));
  BOOST_TEST(alone.boundary_row_bytes == 64 * 4u);
  BOOST_TEST(alone.ranks[0].reduce_row_bytes == 0u);
  BOOST_TEST(alone.ranks[1].gather_row_bytes == 0u);
  auto settings = settings_of(model, shaped(2, 2));
  settings.parallel.wire_dtype = dtype::f16;
  const auto plan = make_plan(settings, *model.open(), plenty);
  BOOST_REQUIRE(plan);
  BOOST_TEST(plan->boundary_row_bytes == 64 * 2u);
  const auto layers = plan->stages[0].size();
  BOOST_TEST(plan->ranks[0].reduce_row_bytes == (2 * layers + 1) * 64 * 4); // and the embedding
  BOOST_TEST(plan->ranks[2].reduce_row_bytes == 2 * (4 - layers) * 64 * 4);
  BOOST_TEST(plan->ranks[0].gather_row_bytes == 0u);
  BOOST_TEST(plan->ranks[0].gather_whole_row_bytes == 0u);
  BOOST_TEST(plan->ranks[2].gather_row_bytes == 2 * (4 + 4u)); // a logit and an id of each rank
  BOOST_TEST(plan->ranks[2].gather_whole_row_bytes == 200 * 4u);
}

BOOST_AUTO_TEST_CASE(B29_ranks_whose_files_lie_elsewhere_are_planned_the_same) {
  const tiny_model model({.layers = 6, .files = 4});
  const auto before = planned(model, shaped(3, 2));
  std::filesystem::remove(model.folder() / "model-00002-of-00004.safetensors");
  std::filesystem::remove(model.folder() / "model-00004-of-00004.safetensors");
  const auto after = planned(model, shaped(3, 2));
  BOOST_TEST((before.stages == after.stages));
  for (std::size_t i = 0; i < before.ranks.size(); ++i)
    BOOST_TEST(before.ranks[i].total_bytes() == after.ranks[i].total_bytes());
}

BOOST_AUTO_TEST_CASE(a_context_beyond_the_models_is_refused) {
  const tiny_model model({.context = 512});
  auto settings = settings_of(model, shaped(1, 1));
  settings.model.context_tokens = 513;
  const auto plan = make_plan(settings, *model.open(), plenty);
  BOOST_REQUIRE(!plan);
  must_say(plan.error(), {"513 tokens", "512"});
}
