// The driver of a partition: forms of input, state, the order of calls, ownership of the output.

#include "compute/architectures/architecture.hpp"
#include "compute/weights/shard_loader.hpp"
#include "tests/unit/compute/partition_stages.hpp"

#include <boost/test/unit_test.hpp>

#include <cstring>

using namespace troupe;
using namespace troupe::tests;

BOOST_FIXTURE_TEST_SUITE(lifecycle, six_layers)

BOOST_AUTO_TEST_CASE(rule_16_tokens_are_legal_only_where_the_partition_owns_input) {
  BOOST_TEST(says(refusal(middle.begin(token_input{tokens})), "does not own input"));
  BOOST_TEST(first.begin(token_input{tokens}).has_value());
}

BOOST_AUTO_TEST_CASE(rule_16_a_hidden_tensor_is_legal_everywhere) {
  for (auto* stage : {&first, &middle, &last})
    BOOST_TEST(stage->begin(hidden_input{one_stage::make_hidden()}).has_value());
}

BOOST_AUTO_TEST_CASE(rule_17_a_wrong_form_is_a_distinct_error_and_the_next_pass_works) {
  const std::vector<token_id> two{5, 6};
  BOOST_TEST(says(refusal(first.begin(token_input{two})), "2 tokens were given for 3 rows"));
  BOOST_TEST(says(refusal(middle.begin(hidden_input{one_stage::make_hidden(2)})),
                  "a hidden tensor of 512 bytes"));
  BOOST_TEST(says(refusal(middle.begin(hidden_input{})), "0 bytes"));
  middle.run();
  first.run();
}

BOOST_AUTO_TEST_CASE(B17_a_token_outside_of_the_vocabulary_is_refused) {
  const std::vector<token_id> bad{5, 256, 7};
  BOOST_TEST(says(refusal(first.begin(token_input{bad}), errc::invalid_argument),
                  "token 256 is outside of the vocabulary of 256"));
}

BOOST_AUTO_TEST_CASE(rule_22_a_state_of_another_layout_is_refused) {
  auto other = last.part->make_state(4);
  BOOST_REQUIRE(other);
  BOOST_TEST(says(
    refusal(middle.part->begin(hidden_input{one_stage::make_hidden()}, three_rows(), *other, 0)),
    "another layout"));
  // Same segments in number and size, but of other layers.
  one_stage shifted({1, 4}, source);
  BOOST_TEST(says(refusal(shifted.part->begin(
                    hidden_input{one_stage::make_hidden()}, three_rows(), middle.state, 0)),
                  "another layout"));
}

BOOST_AUTO_TEST_CASE(rule_22_and_25_the_ordinal_is_local_the_global_start_fails) {
  const hidden_input input{one_stage::make_hidden()};
  BOOST_TEST(middle.part->expected_state().first_unit == 2u);
  BOOST_TEST(
    says(refusal(middle.part->begin(input, three_rows(), middle.state, 2)), "it is local, so 0"));
  BOOST_TEST(says(refusal(last.part->begin(input, three_rows(), last.state, 5)),
                  "beyond the 1 local segments"));
  BOOST_TEST(middle.part->begin(input, three_rows(), middle.state, 0).has_value());
}

BOOST_AUTO_TEST_CASE(rule_11_the_state_is_the_local_slice_with_its_global_start) {
  const auto& layout = middle.part->expected_state();
  BOOST_REQUIRE(layout.segments.size() == 3u);
  BOOST_TEST(layout.first_unit == 2u);
  BOOST_TEST(layout.segments[0].name == "layer.2.kv");
  BOOST_TEST(layout.segments[2].name == "layer.4.kv");
  BOOST_TEST(middle.state.cache->shape().layers == 3u);
}

BOOST_AUTO_TEST_CASE(rows_that_break_a_rule_of_batches_are_refused) {
  auto rows = three_rows();
  rows.sequences[0].first_row = 1;
  BOOST_TEST(says(refusal(first.begin(token_input{tokens}, rows)), "starts at row 1"));
  BOOST_TEST(says(refusal(first.begin(token_input{tokens}, {})), "no rows"));
  rows = three_rows();
  rows.sequences[0].count = 0;
  BOOST_TEST(says(refusal(first.begin(token_input{}, rows)), "has no rows"));
  rows = three_rows(2046);
  BOOST_TEST(says(refusal(first.begin(token_input{tokens}, rows), errc::invalid_argument),
                  "reaches position 2049; the model's context is 2048"));
  rows = three_rows(30);
  BOOST_TEST(says(refusal(first.begin(token_input{tokens}, rows)), "has 1 pages; 2 are needed"));
  rows = three_rows();
  rows.sequences[0].pages = {page_id{4}};
  BOOST_TEST(says(refusal(first.begin(token_input{tokens}, rows)), "page 4 was given"));
  rows = three_rows();
  rows.sequences[0].candidates = 65;
  BOOST_TEST(says(refusal(first.begin(token_input{tokens}, rows)),
                  "asks for 65 candidates; 64 are the most"));
}

BOOST_AUTO_TEST_CASE(rule_26_and_30_each_call_has_one_place_and_a_wrong_one_changes_nothing) {
  BOOST_TEST(says(refusal(first.part->enter()), "enter is out of order"));
  BOOST_TEST(says(refusal(first.part->forward_unit(0)), "no pass has begun"));
  BOOST_TEST(says(refusal(first.part->leave()), "no pass has begun"));
  BOOST_TEST(says(refusal(first.part->finish(false)), "no pass has begun"));
  first.begin_well();
  BOOST_TEST(says(refusal(first.begin(token_input{tokens})), "begin is out of order"));
  BOOST_TEST(says(refusal(first.part->forward_unit(0)), "has not entered"));
  BOOST_TEST(says(refusal(first.part->leave()), "has not entered"));
  BOOST_TEST(says(refusal(first.part->finish(false)), "has not entered"));
  BOOST_TEST(!first.part->next_unit());
  BOOST_REQUIRE(first.part->enter());
  BOOST_TEST(says(refusal(first.part->enter()), "is in its group"));
  BOOST_TEST(says(refusal(first.part->finish(false)), "is in its group"));
  first.run_units();
  BOOST_REQUIRE(first.part->leave());
  BOOST_TEST(says(refusal(first.part->leave()), "has left"));
  BOOST_TEST(says(refusal(first.part->forward_unit(0)), "has left"));
  const auto output = first.part->finish(false);
  BOOST_REQUIRE(output);
  one_stage untroubled({0, 2}, source);
  const auto expected = untroubled.run();
  const auto& found_hidden = std::get<boundary_output>(*output).hidden;
  const auto& expected_hidden = std::get<boundary_output>(expected).hidden;
  BOOST_TEST(std::memcmp(found_hidden.data(), expected_hidden.data(), expected_hidden.size()) == 0);
}

BOOST_AUTO_TEST_CASE(rule_27_units_ascend_inside_of_the_owned_range) {
  middle.begin_well();
  BOOST_REQUIRE(middle.part->enter());
  BOOST_TEST(*middle.part->next_unit() == 2u);
  BOOST_TEST(says(refusal(middle.part->forward_unit(0)), "unit 0 is not owned"));
  BOOST_TEST(says(refusal(middle.part->forward_unit(5)), "this partition owns [2, 5)"));
  BOOST_TEST(says(refusal(middle.part->forward_unit(3)), "2 is next"));
  BOOST_REQUIRE(middle.part->forward_unit(2));
  BOOST_TEST(says(refusal(middle.part->forward_unit(2)), "3 is next"));
  middle.run_units();
  BOOST_TEST(says(refusal(middle.part->forward_unit(4)), "all of them have run"));
}

BOOST_AUTO_TEST_CASE(rule_29_leave_comes_after_the_last_unit_on_every_stage) {
  middle.begin_well();
  BOOST_REQUIRE(middle.part->enter());
  BOOST_REQUIRE(middle.part->forward_unit(2));
  BOOST_TEST(says(refusal(middle.part->leave()), "unit 3 has not run"));
}

BOOST_AUTO_TEST_CASE(rule_20_and_31_final_on_the_output_owner_and_a_boundary_elsewhere) {
  BOOST_TEST(std::holds_alternative<boundary_output>(first.run()));
  BOOST_TEST(std::holds_alternative<boundary_output>(middle.run()));
  const auto output = last.run();
  BOOST_REQUIRE(std::holds_alternative<final_output>(output));
  BOOST_TEST(std::get<final_output>(output).logits.size() == 256 * sizeof(float));
}

BOOST_AUTO_TEST_CASE(rule_35_claiming_output_without_owning_it_is_an_error) {
  for (auto* stage : {&middle, &last}) {
    stage->begin_well();
    BOOST_REQUIRE(stage->part->enter());
    stage->run_units();
    BOOST_REQUIRE(stage->part->leave());
    const bool owns = stage->part->record().owns_output;
    BOOST_TEST(says(refusal(stage->part->finish(!owns)), owns ? "owns output" : "not own output"));
    BOOST_TEST(stage->part->finish(owns).has_value());
  }
}

BOOST_AUTO_TEST_CASE(rule_21_and_46_an_abandoned_pass_leaves_the_next_one_as_it_would_have_been) {
  const auto expected = std::get<final_output>(last.run()).logits;
  for (int steps = 0; steps < 4; ++steps) {
    last.begin_well();
    if (steps > 0)
      BOOST_REQUIRE(last.part->enter());
    if (steps > 1)
      last.run_units();
    if (steps > 2)
      BOOST_REQUIRE(last.part->leave());
    last.part->abandon();
    const auto found = std::get<final_output>(last.run()).logits;
    BOOST_TEST(std::memcmp(found.data(), expected.data(), expected.size()) == 0);
  }
}

BOOST_AUTO_TEST_CASE(rule_18_an_architecture_without_embedding_refuses_tokens_itself) {
  // The driver would not pass them; the architecture has to refuse them all the same.
  auto where = make_device("cpu", {});
  BOOST_REQUIRE(where);
  const partition_record record{.units = {2, 5}};
  const auto shard = source->describe(record, dtype::f32);
  BOOST_REQUIRE(shard);
  const load_progress silent;
  shard_loader loader(*source, *shard, dtype::f32, **where, silent);
  auto body = source->design().load(record, loader, **where);
  BOOST_REQUIRE(body);
  const auto rows = three_rows();
  solo_collective solo;
  forward_context context{rows, middle.state, solo};
  BOOST_TEST(says(refusal((*body)->begin_partition(token_input{tokens}, context)), "no embedding"));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(rule_04_records_that_cannot_be_are_refused_by_name) {
  const tiny_model files({.layers = 4});
  const auto source = files.open();
  const auto describe = [&](const partition_record& record) {
    return refusal(source->describe(record, dtype::f32));
  };
  BOOST_TEST(says(describe({.units = {2, 2}}), "owns no layer"));
  BOOST_TEST(says(describe({.units = {3, 1}}), "owns no layer"));
  BOOST_TEST(
    says(describe({.units = {2, 5}}), "owns layers [2, 5) of group 'decoder', which has 4"));
  BOOST_TEST(says(describe({.units = {0, 2}}), "does not own input"));
  BOOST_TEST(says(describe({.units = {1, 2}, .owns_input = true}), "owns input"));
  BOOST_TEST(says(describe({.units = {2, 4}}), "does not own output"));
}

BOOST_AUTO_TEST_CASE(A05_a_stage_without_layers_is_refused_by_name) {
  const tiny_model files({.layers = 5});
  const auto sixth = split_part(5, 6, 5);
  const auto described = files.open()->describe({.units = sixth, .owns_output = true}, dtype::f32);
  BOOST_TEST(says(refusal(described), "a stage without layers is not possible, use at most 5"));
}

BOOST_AUTO_TEST_CASE(rule_66_tensor_ranks_and_sizes_are_checked_at_construction) {
  const tiny_model files;
  const auto source = files.open();
  partition_record record{.units = {0, 2}, .owns_input = true, .owns_output = true};
  record.tensor_size = 0;
  BOOST_TEST(says(refusal(source->describe(record, dtype::f32), errc::invalid_argument),
                  "sizes 1 to 4 work"));
  record.tensor_size = 5;
  BOOST_TEST(says(refusal(source->describe(record, dtype::f32), errc::invalid_argument),
                  "5 ranks cannot share 4 heads"));
  record = {
    .units = {0, 2}, .owns_input = true, .owns_output = true, .tensor_rank = 2, .tensor_size = 2};
  BOOST_TEST(says(refusal(source->describe(record, dtype::f32), errc::invalid_argument),
                  "rank 2 lies outside"));
  record.tensor_rank = 1;
  auto where = make_device("cpu", {});
  solo_collective solo;
  const auto loaded = partition::load(source, record, dtype::f32, **where, solo, {});
  BOOST_TEST(says(refusal(loaded, errc::mismatch), "rank 0 of 1"));
}
