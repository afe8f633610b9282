#include "actors/conductor/journal.hpp"

#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>

using namespace troupe;
using namespace troupe::actors;

namespace {

std::unique_ptr<journal> opened(const std::filesystem::path& file,
                                const std::string& identity = "a model") {
  auto made = journal::open(file, identity);
  BOOST_REQUIRE_MESSAGE(made, (made ? "" : made.error().what));
  return std::move(*made);
}

generate_request wish(std::vector<token_id> tokens) {
  generate_request made;
  made.tokens = std::move(tokens);
  made.max_tokens = 9;
  made.sampling.temperature = 0.7f;
  made.sampling.seed = ~std::uint64_t{0};
  made.stop = {"Amen", "\n"};
  made.schema = "{}";
  made.bias = {{3, -1.0f}};
  return made;
}

committed_token token(std::uint64_t request, token_id what) {
  committed_token made;
  made.id = request_id{request};
  made.token = what;
  made.logprob = -1.5f;
  made.digest = ~std::uint64_t{0} - what;
  if (what == 11)
    made.top = {{11, -1.5f}, {12, -2.5f}};
  return made;
}

void must(const result<void>& done) {
  BOOST_REQUIRE_MESSAGE(done, (done ? "" : done.error().what));
}

} // namespace

BOOST_AUTO_TEST_CASE(what_was_noted_is_there_for_the_next_process) {
  const tests::temporary_folder place;
  const auto file = place / "j";
  {
    auto first = opened(file);
    must(first->begin(request_id{1}, wish({5, 6})));
    must(first->begin(request_id{2}, wish({7})));
    must(first->append({token(1, 10), token(2, 20)}));
    must(first->append({token(1, 11)}));
    request_end over;
    over.request = request_id{2};
    over.reason = finish_reason::length;
    over.answer_tokens = 1;
    must(first->end(over));
  }
  auto second = opened(file);
  BOOST_TEST(number(*second->last_request()) == 2u);
  const auto left = second->unfinished();
  BOOST_REQUIRE(left);
  BOOST_REQUIRE(left->size() == 1u);
  const auto& one = left->front();
  BOOST_TEST(number(one.id) == 1u);
  BOOST_TEST(one.wish.tokens == (std::vector<token_id>{5, 6}), boost::test_tools::per_element());
  BOOST_TEST(one.wish.sampling.seed == ~std::uint64_t{0});
  BOOST_TEST(one.wish.schema == "{}");
  BOOST_TEST(one.wish.bias.size() == 1u);
  BOOST_TEST((one.wish.stop == std::vector<std::string>{"Amen", "\n"}));
  BOOST_REQUIRE(one.answer.size() == 2u);
  BOOST_TEST(one.answer[0].token == 10u);
  BOOST_TEST(one.answer[1].token == 11u);
  BOOST_TEST(one.answer[1].logprob == -1.5f);
  BOOST_TEST(one.answer[1].digest == ~std::uint64_t{0} - 11);
  BOOST_TEST(one.answer[0].top.empty());
  BOOST_REQUIRE(one.answer[1].top.size() == 2u);
  BOOST_TEST(one.answer[1].top[1].token == 12u);
  BOOST_TEST(one.answer[1].top[1].logprob == -2.5f);
  // It goes on after the tokens that are there.
  must(second->append({token(1, 12)}));
  BOOST_TEST(second->find(request_id{1})->answer.size() == 3u);
  const auto ended = second->find(request_id{2});
  BOOST_REQUIRE(ended);
  BOOST_REQUIRE(ended->end.has_value());
  BOOST_TEST((ended->end->reason == finish_reason::length));
  BOOST_TEST((second->find(request_id{3}).error().code == errc::not_found));
}

BOOST_AUTO_TEST_CASE(requests_that_ended_long_ago_are_forgotten_and_their_ids_never_given_again) {
  const tests::temporary_folder place;
  auto notes = opened(place / "j");
  constexpr std::uint64_t many = 4096 + 512;
  for (std::uint64_t id = 1; id <= many; ++id) {
    must(notes->begin(request_id{id}, wish({1})));
    must(notes->append({token(id, 3)}));
    request_end over;
    over.request = request_id{id};
    must(notes->end(over));
  }
  BOOST_TEST(!notes->find(request_id{1}));
  BOOST_TEST(notes->find(request_id{many}).has_value());
  BOOST_TEST(number(*notes->last_request()) == many);
}

BOOST_AUTO_TEST_CASE(a_journal_of_another_model_a_locked_one_and_no_journal_are_refused) {
  const tests::temporary_folder place;
  const auto file = place / "j";
  {
    auto first = opened(file);
    const auto second = journal::open(file, "a model"); // another process has it
    BOOST_TEST(!second);
  }
  const auto other = journal::open(file, "another model");
  BOOST_REQUIRE(!other);
  BOOST_TEST((other.error().code == errc::mismatch));
  std::ofstream{place / "text"} << "this is no journal, but long enough to be looked at as one";
  const auto text = journal::open(place / "text", "a model");
  BOOST_REQUIRE(!text);
  BOOST_TEST((text.error().code == errc::io_error));
  BOOST_TEST(!journal::open(place / "no such folder" / "j", "a model"));
}
