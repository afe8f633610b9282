// State that moves when a plan changes: what leaves one cache arrives in another, and what does not
// arrive is not claimed.
#include "actors/rank/state_moves.hpp"
#include "actors/conductor/state_reports.hpp"

#include "compute/batch.hpp"

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <memory>
#include <random>

using namespace troupe;
using namespace troupe::actors;
using compute::kv_cache;

namespace {

constexpr std::size_t pages = 8;

std::unique_ptr<kv_cache> make_cache(std::size_t layers, std::size_t of_pages = pages) {
  static const auto device = compute::make_device("cpu", {});
  BOOST_REQUIRE(device);
  auto made =
    (*device)->make_kv_cache({.layers = layers, .kv_heads = 2, .head_dim = 8, .pages = of_pages});
  BOOST_REQUIRE(made);
  return *std::move(made);
}

compute::buffer read(const kv_cache& cache, page_id page, const range& layers) {
  auto bytes = compute::buffer::allocate(cache.page_bytes(layers.size()));
  BOOST_REQUIRE(bytes);
  cache.read_page(page, layers, {bytes->data(), bytes->size()});
  return *bytes;
}

bool same(const compute::buffer& a, const compute::buffer& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

/// The state of a rank that held `units`, with two sequences in it.
former_state make_former(const range& units, std::uint32_t seed) {
  former_state made;
  made.units = units;
  made.pages = pages;
  made.state.cache = make_cache(units.size());
  made.slots = {{slot_id{3}, {page_id{5}, page_id{1}}, 40}, {slot_id{0}, {page_id{2}}, 7}};
  std::mt19937 random(seed);
  for (std::uint32_t page = 0; page < pages; ++page) {
    auto bytes = compute::buffer::allocate(made.state.cache->page_bytes(units.size()));
    BOOST_REQUIRE(bytes);
    for (auto& value : bytes->as<std::uint32_t>())
      value = static_cast<std::uint32_t>(random());
    made.state.cache->write_page(page_id{page}, {0, units.size()}, {bytes->data(), bytes->size()});
  }
  return made;
}

state_outbox make_outbox(const former_state& from, const state_move& move) {
  state_outbox made(epoch_id{4}, *from.state.cache, from.units, from.slots);
  made.add(move);
  return made;
}

/// Hands all messages over; the number of pages.
std::size_t deliver(state_outbox& from, state_intake& to) {
  std::size_t count = 0;
  while (!from.empty()) {
    auto next = from.next();
    BOOST_REQUIRE((next && *next));
    BOOST_TEST(number((*next)->to) == 1u);
    if (const auto* manifest = std::get_if<state_manifest>(&(*next)->message)) {
      BOOST_REQUIRE(to.take(*manifest));
      continue;
    }
    const auto& page = std::get<state_outbox::page_of>((*next)->message);
    BOOST_REQUIRE(to.take(page.what, page.bytes));
    ++count;
  }
  return count;
}

} // namespace

BOOST_AUTO_TEST_CASE(layers_go_to_the_rank_that_holds_them_now_and_stay_where_they_stay) {
  const auto first = make_former({0, 3}, 1);
  const auto second = make_former({3, 6}, 2);
  const auto cache = make_cache(4); // layers 1 to 4 from now on
  state_intake intake(*cache, {1, 5});
  intake.expect({3, 5});
  BOOST_REQUIRE(intake.take(first));
  BOOST_TEST(!intake.complete());
  BOOST_TEST(intake.slots().empty());
  auto outbox = make_outbox(second, {rank_id{0}, rank_id{1}, 3, 5});
  BOOST_TEST(deliver(outbox, intake) == 3u); // used pages alone
  BOOST_TEST(intake.complete());
  BOOST_TEST(intake.slots().size() == 2u);
  for (const auto page : {page_id{5}, page_id{1}, page_id{2}}) {
    BOOST_TEST(same(read(*cache, page, {0, 2}), read(*first.state.cache, page, {1, 3})));
    BOOST_TEST(same(read(*cache, page, {2, 4}), read(*second.state.cache, page, {0, 2})));
  }
}

BOOST_AUTO_TEST_CASE(a_sequence_is_held_as_far_as_every_layer_has_it) {
  auto first = make_former({0, 2}, 1);
  auto second = make_former({2, 4}, 2);
  first.slots[0].length = 33; // an epoch ended between two stages
  second.slots.pop_back();    // and one stage never saw the second sequence
  const auto cache = make_cache(4);
  state_intake intake(*cache, {0, 4});
  intake.expect({2, 4});
  BOOST_REQUIRE(intake.take(first));
  auto outbox = make_outbox(second, {rank_id{0}, rank_id{1}, 2, 4});
  deliver(outbox, intake);
  const auto held = intake.slots();
  BOOST_REQUIRE(held.size() == 1u);
  BOOST_TEST(number(held.front().slot) == 3u);
  BOOST_TEST(held.front().length == 33u);
}

BOOST_AUTO_TEST_CASE(a_rank_that_gives_up_sending_leaves_nothing_to_wait_for) {
  const auto second = make_former({2, 4}, 2);
  const auto cache = make_cache(2);
  state_intake intake(*cache, {2, 4});
  intake.expect({2, 4});
  auto outbox = make_outbox(second, {rank_id{0}, rank_id{1}, 2, 4});
  BOOST_TEST(outbox.positions() == 47u);
  for (int i = 0; i < 2; ++i) {
    auto next = outbox.next();
    BOOST_REQUIRE((next && *next));
    if (const auto* manifest = std::get_if<state_manifest>(&(*next)->message))
      BOOST_REQUIRE(intake.take(*manifest));
    else
      BOOST_REQUIRE(intake.take(std::get<state_outbox::page_of>((*next)->message).what,
                                std::get<state_outbox::page_of>((*next)->message).bytes));
  }
  BOOST_TEST(!intake.complete());
  outbox.give_up();
  BOOST_TEST(deliver(outbox, intake) == 0u);
  BOOST_TEST(intake.complete());
  BOOST_TEST(intake.slots().empty());
}

BOOST_AUTO_TEST_CASE(layers_that_nobody_sends_leave_nothing_to_claim) {
  const auto first = make_former({0, 2}, 1);
  const auto cache = make_cache(4);
  state_intake intake(*cache, {0, 4}); // the rank with layers 2 and 3 is gone
  BOOST_REQUIRE(intake.take(first));
  BOOST_TEST(intake.complete());
  BOOST_TEST(intake.slots().empty());
}

BOOST_AUTO_TEST_CASE(pages_beyond_a_smaller_cache_stay_behind_with_their_sequence) {
  const auto first = make_former({0, 2}, 1);
  const auto cache = make_cache(1, 4); // page 5 is no page any more
  state_intake intake(*cache, {0, 1});
  BOOST_REQUIRE(intake.take(first));
  const auto held = intake.slots();
  BOOST_REQUIRE(held.size() == 1u);
  BOOST_TEST(number(held.front().slot) == 0u);
}

BOOST_AUTO_TEST_CASE(what_was_not_announced_is_refused) {
  const auto cache = make_cache(2);
  state_intake intake(*cache, {0, 2});
  intake.expect({0, 2});
  const auto bytes = compute::buffer::allocate(cache->page_bytes(2));
  BOOST_REQUIRE(bytes);
  const state_page page{epoch_id{4}, page_id{5}, 0, 2};
  BOOST_TEST(!intake.take(page, *bytes));
  BOOST_TEST(!intake.take(state_manifest{epoch_id{4}, 1, 3, {}}));
  BOOST_TEST(!intake.take(state_manifest{epoch_id{4}, 0, 1, {}}));
  BOOST_TEST(!intake.take(state_manifest{epoch_id{4}, 0, 2, {{slot_id{0}, {page_id{5}}, 33}}}));
  BOOST_REQUIRE(intake.take(state_manifest{epoch_id{4}, 0, 2, {{slot_id{0}, {page_id{5}}, 9}}}));
  BOOST_TEST(!intake.take(state_manifest{epoch_id{4}, 0, 2, {{slot_id{0}, {page_id{5}}, 9}}}));
  BOOST_TEST(!intake.take(state_page{epoch_id{4}, page_id{6}, 0, 2}, *bytes));
  BOOST_TEST(!intake.take(state_page{epoch_id{4}, page_id{5}, 0, 1}, *bytes));
  BOOST_TEST(!intake.complete());
  BOOST_REQUIRE(intake.take(page, *bytes));
  BOOST_TEST(intake.complete());
  BOOST_TEST(!intake.take(page, *bytes));
}

BOOST_AUTO_TEST_CASE(a_stage_holds_what_each_of_its_ranks_does) {
  const auto held = join_reports({{rank_id{0}, {{slot_id{1}, 50, 0, 50}, {slot_id{2}, 9, 0, 9}}},
                                  {rank_id{1}, {{slot_id{1}, 48, 20, 48}}},
                                  {rank_id{2}, {{slot_id{1}, 50, 50, 50}}},
                                  {rank_id{3}, {{slot_id{1}, 50, 50, 50}}}},
                                 2,
                                 2);
  BOOST_REQUIRE(held.size() == 2u);
  const auto& first = held.at(slot_id{1});
  BOOST_TEST(first.at(0).positions == 48u);
  BOOST_TEST((first.at(0).rows == range{20, 48}));
  BOOST_TEST(first.at(1).positions == 50u);
  BOOST_TEST(held.at(slot_id{2}).at(0).positions == 0u); // rank 1 does not have it
}
