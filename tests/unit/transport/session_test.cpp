#include "transport/session.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::transport;

namespace {

constexpr epoch_token token{std::byte{1}, std::byte{2}};

frame_header from_peer(std::uint64_t sequence, epoch_id epoch = epoch_id{5}) {
  frame_header header;
  header.kind = first_message_kind;
  header.epoch = epoch;
  header.sequence = sequence;
  header.source = 1;
  header.destination = 0;
  return header;
}

struct started {
  session rules;

  started() { rules.start(epoch_id{5}, 0, token); }

  verdict hello(link_number link, epoch_token shown = token, epoch_id epoch = epoch_id{5}) {
    return rules.greet(from_peer(0, epoch), link, shown);
  }

  verdict answer(link_number link, link_number answers) {
    auto header = from_peer(0);
    header.tag = answers;
    return rules.greet(header, link, token);
  }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(session_rules, started)

BOOST_AUTO_TEST_CASE(nobody_is_heard_without_a_hello) {
  BOOST_TEST((rules.admit(from_peer(1), 7) == verdict::refuse));
  BOOST_TEST(!rules.linked(1));
}

BOOST_AUTO_TEST_CASE(a_wrong_token_is_refused_wherever_it_differs) {
  for (std::size_t i = 0; i < token.size(); ++i) {
    auto wrong = token;
    wrong[i] ^= std::byte{0x80};
    BOOST_TEST((hello(7, wrong) == verdict::refuse));
  }
  const std::span<const std::byte> shown(token);
  BOOST_TEST((rules.greet(from_peer(0), 7, shown.first(15)) == verdict::refuse));
  BOOST_TEST((rules.greet(from_peer(0), 7, {}) == verdict::refuse));
  BOOST_TEST(!rules.linked(1));
}

BOOST_AUTO_TEST_CASE(frames_count_from_one_without_gaps) {
  BOOST_TEST((hello(7) == verdict::accept));
  BOOST_TEST((rules.admit(from_peer(1), 7) == verdict::accept));
  BOOST_TEST((rules.admit(from_peer(2), 7) == verdict::accept));
  BOOST_TEST((rules.admit(from_peer(2), 7) == verdict::refuse));
  BOOST_TEST((rules.admit(from_peer(4), 7) == verdict::broken));
  BOOST_TEST((rules.admit(from_peer(3), 7) == verdict::accept));
}

BOOST_AUTO_TEST_CASE(frames_of_another_epoch_are_stale) {
  BOOST_TEST((hello(7, token, epoch_id{4}) == verdict::stale));
  BOOST_TEST((hello(7, token, epoch_id{6}) == verdict::stale));
  BOOST_TEST((hello(7) == verdict::accept));
  BOOST_TEST((rules.admit(from_peer(1, epoch_id{4}), 7) == verdict::stale));
  rules.start(epoch_id{6}, 0, token);
  BOOST_TEST(!rules.linked(1));
  BOOST_TEST((rules.admit(from_peer(1), 7) == verdict::stale));
}

BOOST_AUTO_TEST_CASE(a_new_link_replaces_the_old_one_and_its_number_is_needed) {
  BOOST_TEST((hello(7) == verdict::accept));
  BOOST_TEST((rules.admit(from_peer(1), 7) == verdict::accept));
  BOOST_TEST((rules.admit(from_peer(2), 8) == verdict::refuse));
  BOOST_TEST((hello(9) == verdict::accept));
  BOOST_TEST((rules.admit(from_peer(2), 7) == verdict::refuse));
  BOOST_TEST((rules.admit(from_peer(1), 9) == verdict::accept));
  BOOST_TEST((hello(9) == verdict::accept));
  BOOST_TEST((rules.admit(from_peer(2), 9) == verdict::accept));
}

BOOST_AUTO_TEST_CASE(a_link_is_made_when_both_ends_know_that_they_are_heard) {
  const auto ours = rules.open(1);
  BOOST_TEST(rules.hello(1).tag == 0u);
  BOOST_TEST(!rules.owes_hello(1));
  BOOST_TEST((answer(7, 0) == verdict::accept));
  BOOST_TEST(!rules.linked(1));
  BOOST_TEST(rules.owes_hello(1));
  BOOST_TEST(rules.hello(1).tag == 7u);
  BOOST_TEST(!rules.owes_hello(1));
  BOOST_TEST((answer(7, ours) == verdict::accept));
  BOOST_TEST(rules.linked(1));
  BOOST_TEST(!rules.owes_hello(1));
}

BOOST_AUTO_TEST_CASE(an_answer_to_a_link_that_was_given_up_is_stale) {
  const auto first = rules.open(1);
  const auto second = rules.open(1);
  BOOST_TEST((answer(7, first) == verdict::stale));
  BOOST_TEST(!rules.linked(1));
  BOOST_TEST((answer(8, second) == verdict::accept));
  BOOST_TEST(rules.linked(1));
}

BOOST_AUTO_TEST_CASE(a_peer_that_makes_a_new_link_ends_ours) {
  const auto first = rules.open(1);
  BOOST_TEST((answer(7, first) == verdict::accept));
  BOOST_TEST((answer(8, 0) == verdict::renewed));
  rules.give_up(1);
  BOOST_TEST(!rules.linked(1));
  const auto second = rules.open(1);
  BOOST_TEST(rules.hello(1).tag == 8u); // Still heard.
  BOOST_TEST((answer(8, second) == verdict::accept));
  BOOST_TEST(rules.linked(1));
}

BOOST_AUTO_TEST_CASE(frames_for_somebody_else_and_from_ourselves_are_refused) {
  auto header = from_peer(0);
  header.destination = 3;
  BOOST_TEST((rules.greet(header, 7, token) == verdict::refuse));
  header.destination = 0;
  header.source = 0;
  BOOST_TEST((rules.greet(header, 7, token) == verdict::refuse));
  BOOST_TEST((hello(0) == verdict::refuse));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(a_session_that_was_not_started_hears_nobody) {
  session rules;
  BOOST_TEST((rules.greet(from_peer(0, epoch_id{0}), 7, epoch_token{}) == verdict::stale));
}
