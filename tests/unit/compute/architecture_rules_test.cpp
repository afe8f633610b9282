// Descriptions of architectures and partitions: every way in which they can be wrong.

#include "compute/architectures/architecture.hpp"
#include "compute/architectures/graph.hpp"
#include "compute/architectures/parameters.hpp"
#include "compute/architectures/state_plan.hpp"
#include "tests/support/tiny_model.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::compute;
using namespace troupe::tests;

namespace {

/// A decoder of four units and a draft head of one.
graph make_graph() {
  return {
    .primary = "decoder",
    .groups = {{.name = "decoder", .unit_paths = {"layers.0", "layers.1", "layers.2", "layers.3"}},
               {.name = "draft",
                .is = graph_group::kind::prediction,
                .unit_paths = {"draft.0"},
                .depends_on = {"decoder"},
                .on_output_owner = true}}};
}

std::vector<parameter> make_parameters() {
  return {{"embed.weight", "embedding", {}, {10, 4}, {}},
          {"layers.0.weight", "weight", unit_place{"decoder", 0}, {4, 4}, {}},
          {"layers.0.bias", "bias", unit_place{"decoder", 0}, {4}, {}},
          {"layers.3.weight", "weight", unit_place{"decoder", 3}, {4, 4}, {}},
          {"norm.weight", "final_norm", {}, {4}, {}}};
}

state_plan make_plan() {
  state_plan plan;
  for (int i = 0; i < 4; ++i)
    plan.layout.push_back({"layer." + std::to_string(i), 2, 8, 0});
  plan.layout.push_back({"draft", 1, 8, 0});
  plan.rules = {{"draft", state_rule::kind::output_owner, {4, 5}},
                {"decoder", state_rule::kind::unit_aligned, {0, 4}}};
  return plan;
}

template <class T>
std::string refusal(const result<T>& outcome) {
  BOOST_REQUIRE(!outcome);
  return outcome.error().what;
}

bool says(const std::string& sentence, std::string_view part) {
  BOOST_TEST_MESSAGE(sentence);
  return sentence.find(part) != std::string::npos;
}

template <class Change>
std::string broken_graph(Change change) {
  auto layout = make_graph();
  change(layout);
  return refusal(check_graph(layout));
}

template <class Change>
std::string broken_parameters(Change change) {
  auto list = make_parameters();
  change(list);
  return refusal(check_parameters(make_graph(), list));
}

template <class Change>
std::string broken_plan(Change change) {
  auto plan = make_plan();
  change(plan);
  return refusal(check_state_plan(make_graph(), plan));
}

std::string broken_match(std::vector<found_parameter> found) {
  return refusal(match_parameters(
    make_parameters(),
    found,
    [](std::string_view name) { return name == "extra"; },
    [](std::string_view name) { return name == "layers.3.weight"; }));
}

std::vector<found_parameter> found_all() {
  std::vector<found_parameter> found;
  for (const auto& one : make_parameters())
    found.push_back({one.name, one.shape});
  return found;
}

} // namespace

BOOST_AUTO_TEST_CASE(rule_03_each_unsound_graph_has_its_own_sentence) {
  BOOST_TEST(check_graph(make_graph()).has_value());
  BOOST_TEST(says(broken_graph([](graph& g) { g.groups[0].unit_paths[1].clear(); }), "empty path"));
  BOOST_TEST(says(broken_graph([](graph& g) { g.groups[1].unit_paths[0] = "layers.2"; }),
                  "'layers.2' occurs twice"));
  BOOST_TEST(says(broken_graph([](graph& g) { g.primary = "encoder"; }), "'encoder' is missing"));
  BOOST_TEST(says(broken_graph([](graph& g) { g.primary = "draft"; }), "not a pipeline decoder"));
  BOOST_TEST(says(broken_graph([](graph& g) { g.groups[1].on_output_owner = false; }),
                  "'draft' is not on the output owner"));
  BOOST_TEST(says(broken_graph([](graph& g) { g.groups.push_back(g.groups[0]); }),
                  "'decoder' is declared twice"));
  BOOST_TEST(says(broken_graph([](graph& g) { g.groups[1].depends_on = {"vision"}; }),
                  "depends on 'vision'"));
}

BOOST_AUTO_TEST_CASE(rule_04_groups_are_known_once_non_empty_inside_and_ordered) {
  const auto check = [](std::vector<owned_group> groups) {
    return check_ownership(make_graph(), {.groups = std::move(groups)});
  };
  BOOST_TEST(says(refusal(check({{"vision", {0, 1}}})), "'vision', which is not declared"));
  BOOST_TEST(says(refusal(check({{"decoder", {0, 1}}, {"decoder", {1, 2}}})), "'decoder' twice"));
  BOOST_TEST(says(refusal(check({{"decoder", {2, 2}}})), "owns no layer"));
  BOOST_TEST(says(refusal(check({{"decoder", {3, 2}}})), "owns no layer"));
  BOOST_TEST(says(refusal(check({{"decoder", {2, 5}}})), "[2, 5) of group 'decoder', which has 4"));
  const auto ordered = check({{"draft", {0, 1}}, {"decoder", {2, 4}}});
  BOOST_REQUIRE(ordered);
  BOOST_TEST((ordered->groups == std::vector<owned_group>{{"decoder", {2, 4}}, {"draft", {0, 1}}}));
}

BOOST_AUTO_TEST_CASE(rule_05_ownership_roles_are_non_empty_and_unique) {
  const auto check = [](std::vector<std::string> owned, std::vector<std::string> stored) {
    return check_ownership(make_graph(),
                           {.groups = {{"decoder", {0, 4}}},
                            .owned_roles = std::move(owned),
                            .stored_roles = std::move(stored)});
  };
  BOOST_TEST(check({"embedding"}, {"head"}).has_value());
  BOOST_TEST(says(refusal(check({""}, {})), "empty name"));
  BOOST_TEST(says(refusal(check({"head", "head"}, {})), "'head' twice"));
  BOOST_TEST(says(refusal(check({"head"}, {"head"})), "'head' twice"));
}

BOOST_AUTO_TEST_CASE(rule_06_bound_parameters_are_local) {
  const auto list = make_parameters();
  const auto names = [&](const ownership& owned) {
    std::vector<std::string> local;
    for (const auto* one : local_parameters(list, owned))
      local.push_back(one->name);
    return local;
  };
  using texts = std::vector<std::string>;
  BOOST_TEST((names({.groups = {{"decoder", {0, 2}}}, .owned_roles = {"embedding"}})
              == texts{"embed.weight", "layers.0.weight", "layers.0.bias"}));
  BOOST_TEST((names({.groups = {{"decoder", {2, 4}}},
                     .owned_roles = {"final_norm"},
                     .stored_roles = {"embedding"}})
              == texts{"embed.weight", "layers.3.weight", "norm.weight"}));
}

BOOST_AUTO_TEST_CASE(rule_07_each_unsound_description_has_its_own_sentence) {
  using list = std::vector<parameter>;
  BOOST_TEST(check_parameters(make_graph(), make_parameters()).has_value());
  BOOST_TEST(says(broken_parameters([](list& l) { l[1].place->group = "vision"; }),
                  "group 'vision', which is not declared"));
  BOOST_TEST(says(broken_parameters([](list& l) { l[3].place->unit = 4; }), "unit 4 of group"));
  BOOST_TEST(says(broken_parameters([](list& l) { l[0].role.clear(); }), "empty role"));
  BOOST_TEST(says(broken_parameters([](list& l) { l[4].role = "embedding"; }), "is taken"));
  BOOST_TEST(says(broken_parameters([](list& l) { l[2].role = "weight"; }), "is taken"));
  BOOST_TEST(says(broken_parameters([](list& l) { l[2].name = "norm.weight"; }),
                  "'norm.weight' is described twice"));
  BOOST_TEST(says(broken_parameters([](list& l) { l[2].shape = {}; }), "has the shape []"));
  BOOST_TEST(says(broken_parameters([](list& l) { l[2].shape = {4, 0}; }), "[4, 0]"));
}

BOOST_AUTO_TEST_CASE(rule_07_what_is_found_equals_the_authoritative_set) {
  auto found = found_all();
  found.push_back({"extra", {1}}); // known to be no parameter
  found.erase(found.begin() + 3);  // excused: its file is elsewhere
  BOOST_TEST(match_parameters(
               make_parameters(),
               found,
               [](std::string_view name) { return name == "extra"; },
               [](std::string_view name) { return name == "layers.3.weight"; })
               .has_value());
  found = found_all();
  found.erase(found.begin());
  BOOST_TEST(says(broken_match(found), "'embed.weight' is missing"));
  found = found_all();
  found.push_back({"adapter", {1}});
  BOOST_TEST(says(broken_match(found), "'adapter' is not expected"));
  found = found_all();
  found.push_back(found.front());
  BOOST_TEST(says(broken_match(found), "'embed.weight' was found twice"));
  found = found_all();
  found[1].shape = {4, 5};
  BOOST_TEST(says(broken_match(found), "has the shape [4, 5]; the config asks for [4, 4]"));
}

BOOST_AUTO_TEST_CASE(rule_08_a_partition_is_proven_by_graph_and_units_not_by_names) {
  BOOST_TEST(prove_same_graph(make_graph(), make_graph()).has_value());
  auto other = make_graph();
  other.groups[1].depends_on.clear();
  BOOST_TEST(says(refusal(prove_same_graph(make_graph(), other)), "edges of group 'draft'"));
  other = make_graph();
  other.groups[0].unit_paths[2] = "blocks.2";
  BOOST_TEST(says(refusal(prove_same_graph(make_graph(), other)), "units of group 'decoder'"));
  other = make_graph();
  other.groups.pop_back();
  BOOST_TEST(says(refusal(prove_same_graph(make_graph(), other)), "other groups"));
  const tiny_model four({.layers = 4});
  const tiny_model five({.layers = 5});
  BOOST_TEST(!prove_same_graph(four.open()->design().layout(), five.open()->design().layout()));
}

BOOST_AUTO_TEST_CASE(rule_09_each_unsound_state_plan_has_its_own_sentence) {
  using kind = state_rule::kind;
  BOOST_TEST(check_state_plan(make_graph(), make_plan()).has_value());
  BOOST_TEST(says(broken_plan([](state_plan& p) { p.rules.clear(); }), "has no rule"));
  BOOST_TEST(says(broken_plan([](state_plan& p) { p.rules[0].segments = {4, 4}; }), "is empty"));
  BOOST_TEST(says(broken_plan([](state_plan& p) {
                    p.rules[0].segments = {4, 6};
                  }),
                  "ends at segment 6 of 5"));
  BOOST_TEST(says(broken_plan([](state_plan& p) { p.rules[0].segments = {3, 5}; }), "overlaps"));
  BOOST_TEST(says(broken_plan([](state_plan& p) { p.rules.erase(p.rules.begin()); }),
                  "segment 4 belongs to nobody"));
  BOOST_TEST(
    says(broken_plan([](state_plan& p) { p.rules.pop_back(); }), "segment 0 belongs to nobody"));
  BOOST_TEST(says(broken_plan([](state_plan& p) { p.rules[0].group = "vision"; }),
                  "'vision', which is not declared"));
  BOOST_TEST(says(
    broken_plan([](state_plan& p) {
      p.rules = {{"decoder", kind::unit_aligned, {0, 3}}, {"draft", kind::output_owner, {3, 5}}};
    }),
    "has 3 segments for 4 units"));
}

BOOST_AUTO_TEST_CASE(rule_10_and_11_a_partition_gets_its_adjacent_slice_with_its_global_start) {
  const auto plan = make_plan();
  const auto middle = resolve_state(plan, {.groups = {{"decoder", {1, 3}}}}, false);
  BOOST_REQUIRE(middle);
  BOOST_REQUIRE(middle->has_value());
  BOOST_TEST((*middle)->first_unit == 1u);
  BOOST_REQUIRE((*middle)->segments.size() == 2u);
  BOOST_TEST((*middle)->segments[0].name == "layer.1");
  const auto last = resolve_state(plan, {.groups = {{"decoder", {3, 4}}, {"draft", {0, 1}}}}, true);
  BOOST_REQUIRE(last);
  BOOST_TEST((*last)->segments.size() == 2u);
  BOOST_TEST((*last)->segments[1].name == "draft");
  const auto stateless = resolve_state(plan, {}, false);
  BOOST_REQUIRE(stateless);
  BOOST_TEST(!stateless->has_value());
  BOOST_TEST(
    says(refusal(resolve_state(plan, {.groups = {{"decoder", {0, 2}}}}, true)), "not adjacent"));
}

BOOST_AUTO_TEST_CASE(rule_13_a_driver_needs_its_group_its_units_and_its_state) {
  const ownership owned{.groups = {{"decoder", {1, 3}}}};
  const auto state = [](std::size_t first, std::size_t count) {
    return std::optional(state_layout{first, std::vector<state_segment>(count)});
  };
  const auto check = [&](std::string_view group, range stored, std::optional<state_layout> with) {
    return check_group_driver(owned, group, stored, with, true);
  };
  BOOST_TEST(check("decoder", {1, 3}, state(1, 2)).has_value());
  BOOST_TEST(check("decoder", {1, 3}, state(0, 4)).has_value()); // covers
  BOOST_TEST(says(refusal(check("draft", {0, 1}, state(1, 2))), "'draft', which is not owned"));
  BOOST_TEST(says(refusal(check("decoder", {0, 3}, state(1, 2))), "stores units [0, 3)"));
  BOOST_TEST(says(refusal(check("decoder", {1, 3}, std::nullopt)), "but the partition has none"));
  BOOST_TEST(says(refusal(check("decoder", {1, 3}, state(2, 2))), "covers units [2, 4)"));
  BOOST_TEST(says(refusal(check("decoder", {1, 3}, state(1, 1))), "covers units [1, 2)"));
  BOOST_TEST(check_group_driver(owned, "decoder", {1, 3}, std::nullopt, false).has_value());
}

BOOST_AUTO_TEST_CASE(rule_19_input_roles_lie_first_output_roles_last_and_a_tied_head_is_a_replica) {
  const tiny_model files({.layers = 4, .tied_head = true});
  const auto source = files.open();
  const auto holds = [&](const partition_record& record, std::string_view name) {
    const auto shard = source->describe(record, dtype::f32);
    BOOST_REQUIRE(shard);
    return std::any_of(shard->tensors.begin(), shard->tensors.end(), [&](const auto& tensor) {
      return tensor.name == name;
    });
  };
  const partition_record first{.units = {0, 2}, .owns_input = true};
  const partition_record middle{.units = {1, 3}};
  const partition_record last{.units = {2, 4}, .owns_output = true};
  BOOST_TEST(holds(first, "model.embed_tokens.weight"));
  BOOST_TEST(!holds(first, "model.norm.weight"));
  BOOST_TEST(!holds(middle, "model.embed_tokens.weight"));
  BOOST_TEST(holds(last, "model.embed_tokens.weight"));
  BOOST_TEST(holds(last, "model.norm.weight"));
  const auto owned = source->design().owned_by(last);
  BOOST_TEST((owned.stored_roles == std::vector<std::string>{"embedding"}));
}
