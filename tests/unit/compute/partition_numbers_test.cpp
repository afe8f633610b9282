// What a partition computes: rows alone, large values, failures on the way.

#include "tests/support/stage_grid.hpp"
#include "tests/unit/compute/partition_stages.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstring>

using namespace troupe;
using namespace troupe::tests;

namespace {

/// A group of two whose other member brings zeros, and whose n-th call fails.
class failing_group final : public collective {
public:
  explicit failing_group(std::size_t fails_at) : left_(fails_at) {}

  std::size_t rank() const noexcept override { return 0; }

  std::size_t size() const noexcept override { return 2; }

  result<void> all_reduce_sum(std::span<float>) override { return count(); }

  result<void> all_gather(std::span<const float> mine,
                          std::span<const std::size_t>,
                          std::span<float> all) override {
    std::fill(all.begin(), all.end(), 0.0f);
    std::copy(mine.begin(), mine.end(), all.begin());
    return count();
  }

  result<void> barrier() override { return count(); }

private:
  result<void> count() {
    if (left_ == 0)
      return error{errc::unreachable, "the other member went away"};
    --left_;
    return {};
  }

  std::size_t left_;
};

result<partition_output> run_all(partition& part, partition_state& state) {
  if (auto done = part.begin(token_input{tokens}, three_rows(), state, 0); !done)
    return done.error();
  if (auto done = part.enter(); !done)
    return done.error();
  while (const auto unit = part.next_unit())
    if (auto done = part.forward_unit(*unit); !done)
      return done.error();
  if (auto done = part.leave(); !done)
    return done.error();
  return part.finish(true);
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(numbers, six_layers)

BOOST_AUTO_TEST_CASE(a_boundary_is_a_fresh_buffer_and_the_input_is_only_read) {
  const auto input = one_stage::make_hidden();
  const auto before = one_stage::make_hidden();
  std::vector<buffer> kept;
  for (int pass = 0; pass < 3; ++pass) {
    BOOST_REQUIRE(middle.begin(hidden_input{input}));
    BOOST_REQUIRE(middle.part->enter());
    middle.run_units();
    BOOST_REQUIRE(middle.part->leave());
    auto output = middle.part->finish(false);
    BOOST_REQUIRE(output);
    kept.push_back(std::get<boundary_output>(*output).hidden);
  }
  BOOST_TEST(std::memcmp(input.data(), before.data(), input.size()) == 0);
  BOOST_TEST(kept[0].data() != kept[1].data());
  BOOST_TEST(kept[1].data() != kept[2].data());
  BOOST_TEST(std::memcmp(kept[0].data(), kept[2].data(), kept[0].size()) == 0);
}

BOOST_AUTO_TEST_CASE(rows_without_wanted_output_cost_no_logits) {
  auto rows = three_rows();
  rows.sequences[0].wants_output = false;
  BOOST_REQUIRE(last.begin(hidden_input{one_stage::make_hidden()}, rows));
  BOOST_REQUIRE(last.part->enter());
  last.run_units();
  BOOST_REQUIRE(last.part->leave());
  const auto output = last.part->finish(true);
  BOOST_REQUIRE(output);
  BOOST_TEST(std::get<final_output>(*output).logits.size() == 0u);
  BOOST_TEST(std::get<final_output>(*output).finite.empty());
}

BOOST_AUTO_TEST_CASE(a_row_that_is_not_finite_is_reported_alone) {
  auto input = one_stage::make_hidden();
  input.as<float>()[hidden + 5] = std::nanf("");
  const batch rows{.sequences = {{.pages = {page_id{0}}, .first_row = 0, .count = 1},
                                 {.pages = {page_id{1}}, .first_row = 1, .count = 1},
                                 {.pages = {page_id{2}}, .first_row = 2, .count = 1}}};
  for (auto* stage : {&middle, &last}) {
    BOOST_REQUIRE(stage->begin(hidden_input{input}, rows));
    BOOST_REQUIRE(stage->part->enter());
    stage->run_units();
    BOOST_REQUIRE(stage->part->leave());
    const auto output = stage->part->finish(stage->part->record().owns_output);
    BOOST_REQUIRE(output);
    const auto& finite = std::holds_alternative<final_output>(*output)
                           ? std::get<final_output>(*output).finite
                           : std::get<boundary_output>(*output).finite;
    BOOST_TEST((finite == std::vector<bool>{true, false, true}));
  }
}

BOOST_AUTO_TEST_CASE(rule_23_attention_is_causal_without_a_mask) {
  const auto hidden_of = [&](const std::vector<token_id>& text) {
    one_stage stage({0, 2}, source);
    BOOST_REQUIRE(stage.begin(token_input{text}));
    BOOST_REQUIRE(stage.part->enter());
    stage.run_units();
    BOOST_REQUIRE(stage.part->leave());
    auto output = stage.part->finish(false);
    BOOST_REQUIRE(output);
    return std::get<boundary_output>(*output).hidden;
  };
  const auto one = hidden_of({5, 6, 7});
  const auto other = hidden_of({5, 6, 9});
  constexpr auto row = hidden * sizeof(float);
  BOOST_TEST(std::memcmp(one.data(), other.data(), 2 * row) == 0);
  BOOST_TEST(std::memcmp(one.data() + 2 * row, other.data() + 2 * row, row) != 0);
  const auto changed = hidden_of({4, 6, 7});
  BOOST_TEST(std::memcmp(one.data() + 2 * row, changed.data() + 2 * row, row) != 0);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(E35_a_collective_that_fails_at_any_call_ends_the_pass_and_only_the_pass) {
  const tiny_model files({.layers = 2});
  const auto source = files.open();
  auto where = make_device("cpu", {});
  BOOST_REQUIRE(where);
  failing_group never(1000);
  auto part = partition::load(
    source,
    {.units = {0, 2}, .owns_input = true, .owns_output = true, .tensor_rank = 0, .tensor_size = 2},
    dtype::f32,
    **where,
    never,
    {});
  BOOST_REQUIRE(part);
  auto state = (*part)->make_state(4);
  BOOST_REQUIRE(state);
  const auto expected = run_all(**part, *state);
  BOOST_REQUIRE(expected);
  const auto& logits = std::get<final_output>(*expected).logits;
  std::size_t calls = 0;
  for (;; ++calls) {
    failing_group group(calls);
    (*part)->use_group(group);
    const auto outcome = run_all(**part, *state);
    if (outcome)
      break;
    BOOST_TEST((outcome.error().code == errc::unreachable));
    if (calls > 0) // a failed begin has not begun
      BOOST_TEST(says(refusal((*part)->enter()), "has failed"));
    (*part)->abandon();
    (*part)->use_group(never);
    const auto next = run_all(**part, *state);
    BOOST_REQUIRE(next);
    const auto& found = std::get<final_output>(*next).logits;
    BOOST_TEST(std::memcmp(found.data(), logits.data(), logits.size()) == 0);
  }
  BOOST_TEST(calls == 6u); // the lookup, two a layer, the logits
  (*part)->use_group(never);
}

BOOST_AUTO_TEST_CASE(G01_large_activations_stay_finite_in_every_holding_type) {
  const tiny_model files({.layers = 4, .scale = 45});
  for (const auto hold : {dtype::f32, dtype::bf16, dtype::f16}) {
    stage_grid grid(files.open(), {.stages = 2, .hold = hold}); // requires finite rows
    const auto run = run_greedy(grid, {7, 200, 3, 99, 12, 41}, 8, 16);
    BOOST_TEST(run.ids != std::vector<token_id>(16, 0));
  }
  // The activations did leave what 16-bit floats can hold.
  one_stage first({0, 2}, files.open());
  const auto output = first.run();
  float largest = 0;
  for (const auto value : std::get<boundary_output>(output).hidden.as<float>())
    largest = std::max(largest, std::fabs(value));
  BOOST_TEST(largest > 1e5f);
}

BOOST_AUTO_TEST_CASE(B15_ids_above_a_thousand_are_read_and_chosen) {
  const tiny_model files({.vocabulary = 1500, .seed = 8});
  stage_grid grid(files.open(), {.tensor = 3});
  growing_text text({1000, 1499, 1001}, 0);
  const auto logits = run_prompt(grid, text, 8).back();
  BOOST_TEST(logits.size() == 1500u);
  stage_grid whole(files.open());
  const auto run = run_greedy(whole, {1000, 1499, 1001}, 8, 40);
  BOOST_TEST(*std::max_element(run.ids.begin(), run.ids.end()) > 1000u);
}
