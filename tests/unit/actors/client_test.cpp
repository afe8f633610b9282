// The client against a gateway that behaves as each test wants, in a process of its own.
#include "actors/control/client.hpp"
#include "actors/control/run_folder.hpp"
#include "actors/control/system.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>

#include <cmath>
#include <limits>
#include <signal.h>
#include <thread>
#include <unistd.h>

using namespace troupe;
using namespace troupe::actors;
using std::chrono::milliseconds;
using clock_type = std::chrono::steady_clock;

namespace {

constexpr milliseconds patience{20'000};

cluster_settings one_node() {
  cluster_settings made;
  made.file = "cluster.toml";
  node_settings node;
  node.name = node.advertise = "127.0.0.1";
  node.name = "a";
  made.nodes.push_back(node);
  made.cluster.head = "a";
  return made;
}

struct puppet_state {
  std::uint64_t last_request = 0;
};

using puppet = gateway_actor::stateful_pointer<puppet_state>;

void say_piece(puppet self,
               const client_actor& client,
               request_id request,
               std::uint32_t first,
               const std::string& text) {
  text_piece piece;
  piece.request = request;
  piece.first = first;
  piece.text = text;
  piece.tokens = {first + 100};
  piece.logprobs = {first == 0 ? real32(-std::numeric_limits<float>::infinity()) : real32(-0.25f)};
  piece.digests = {0xfedcba9876543210u + first};
  self->send(client, std::move(piece));
}

void say_end(puppet self, const client_actor& client, request_id request, finish_reason reason) {
  request_end end;
  end.request = request;
  end.reason = reason;
  end.prompt_tokens = 5;
  end.queued_us = 1'000'000;
  end.first_token_us = 250'000;
  end.total_us = 500'000;
  if (reason == finish_reason::failed) {
    end.code = static_cast<std::uint8_t>(errc::compute_error);
    end.what = "a value is not finite";
  }
  self->send(client, std::move(end));
}

// The prompt says what is to happen.
caf::result<request_id>
act(puppet self, const generate_request& wish, const caf::strong_actor_ptr& asker) {
  const auto client = caf::actor_cast<client_actor>(asker);
  const auto request = request_id{++self->state.last_request};
  if (wish.prompt == "refuse")
    return to_caf({errc::overloaded, "the queue holds 256 requests"});
  if (wish.prompt == "die")
    ::raise(SIGKILL);
  if (wish.prompt == "hang")
    return request;
  if (wish.prompt == "gap") {
    say_piece(self, client, request, 0, "one");
    say_piece(self, client, request, 2, "three");
    return request;
  }
  // Pieces that overtake the answer to the request, as those of another actor can.
  say_piece(self, client, request, 0, wish.prompt + ":");
  say_piece(self, client, request, 1, std::to_string(wish.max_tokens));
  const bool fails = wish.prompt == "fail";
  say_end(self, client, request, fails ? finish_reason::failed : finish_reason::end);
  return request;
}

gateway_actor::behavior_type puppet_gateway(puppet self, caf::strong_actor_ptr* hung) {
  return {
    [](node_hello&, node_actor&) { return node_welcome{}; },
    [=](generate_request& wish, caf::strong_actor_ptr& asker) {
      if (wish.prompt == "hang")
        *hung = asker;
      return act(self, wish, asker);
    },
    [](stream_attach& which, caf::strong_actor_ptr&) { return which.request; },
    [=](request_cancel which) {
      if (*hung)
        say_end(
          self, caf::actor_cast<client_actor>(*hung), which.request, finish_reason::cancelled);
    },
    [](terms_query) { return cluster_terms{}; },
    [](status_query) {
      cluster_status made;
      made.cluster = "puppets";
      made.phase = "serving";
      rank_status rank;
      rank.gauge.rank = rank_id{3};
      rank.links = "shm";
      made.ranks.push_back(rank);
      return made;
    },
    [](node_drain&) {},
    [](fault_order& order) { return fault_receipt{order.what + " at " + order.where}; },
    [](trace_order&) { return trace_report{}; },
    [](cluster_stop&) { ::raise(SIGTERM); },
  };
}

const test::role puppets("puppets", [](test::parent& p) {
  const auto settings = one_node();
  auto plane = control_plane::start(settings);
  auto held = control_file::claim(p.arguments().at(0));
  if (!plane || !held)
    return 1;
  caf::strong_actor_ptr hung;
  const auto gateway = (*plane)->system().spawn(puppet_gateway, &hung);
  const auto port = (*plane)->publish(gateway, 0);
  if (!port || !held->write({*port, "puppets", "a"}))
    return 1;
  p.say("open");
  p.hear(milliseconds(60'000));
  return 0;
});

struct puppet_theatre {
  puppet_theatre() : head(test::process::start("puppets", {run_folder})) {
    BOOST_REQUIRE(head.hear(patience) == "open");
    auto found = cluster_client::connect(one_node(), run_folder, milliseconds(5000));
    BOOST_REQUIRE(found);
    client = std::move(*found);
  }

  static text_request ask(const std::string& prompt, std::uint32_t max_tokens = 9) {
    text_request made;
    made.prompt = prompt;
    made.max_tokens = max_tokens;
    return made;
  }

  tests::temporary_folder folder;
  std::string run_folder = folder / "base/run";
  // make_run_folder makes two levels, the upper one for this user alone.
  test::process head;
  std::unique_ptr<cluster_client> client;
  std::atomic<bool> cancel{false};
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(clients, puppet_theatre)

BOOST_AUTO_TEST_CASE(answers_come_in_the_order_of_the_requests) {
  std::vector<std::string> heard(3);
  const auto answers = client->generate(
    {ask("one", 1), ask("two", 2), ask("three", 3)},
    [&](std::size_t index, const std::string& piece) { heard.at(index) += piece; },
    cancel);
  BOOST_REQUIRE(answers);
  BOOST_REQUIRE(answers->size() == 3u);
  BOOST_TEST((*answers)[0].text == "one:1");
  BOOST_TEST((*answers)[1].text == "two:2");
  BOOST_TEST((*answers)[2].text == "three:3");
  for (std::size_t i = 0; i < 3; ++i)
    BOOST_TEST(heard[i] == (*answers)[i].text);
  const auto& first = answers->front();
  BOOST_TEST(first.finish == "stop");
  BOOST_TEST(first.tokens == (std::vector<token_id>{100, 101}));
  BOOST_TEST(first.digests.at(0) == 0xfedcba9876543210u);
  BOOST_TEST(first.prompt_tokens == 5u);
  BOOST_TEST(first.queued_s == 1.0);
  BOOST_TEST(first.first_token_s == 0.25);
  BOOST_TEST(first.total_s == 0.5);
}

BOOST_AUTO_TEST_CASE(an_infinite_logprob_crosses_the_wire) {
  const auto answers = client->generate({ask("x")}, {}, cancel);
  BOOST_REQUIRE(answers);
  BOOST_TEST(std::isinf(answers->front().logprobs.at(0)));
  BOOST_TEST(answers->front().logprobs.at(1) == -0.25f);
}

BOOST_AUTO_TEST_CASE(one_that_is_refused_or_fails_does_not_touch_the_others) {
  const auto answers = client->generate({ask("refuse"), ask("good"), ask("fail")}, {}, cancel);
  BOOST_REQUIRE(answers);
  const auto& refused = (*answers)[0];
  BOOST_TEST(refused.finish == "error");
  BOOST_TEST(to_string(refused.code) == to_string(errc::overloaded));
  BOOST_TEST(refused.what == "the queue holds 256 requests");
  BOOST_TEST((*answers)[1].finish == "stop");
  BOOST_TEST((*answers)[2].finish == "error");
  BOOST_TEST((*answers)[2].what == "a value is not finite");
}

BOOST_AUTO_TEST_CASE(E44_a_lost_or_repeated_token_is_an_error_not_an_answer) {
  const auto answers = client->generate({ask("gap"), ask("good")}, {}, cancel);
  BOOST_REQUIRE(answers);
  BOOST_TEST(answers->front().finish == "error");
  BOOST_TEST(to_string(answers->front().code) == to_string(errc::contract_violation));
  BOOST_TEST(answers->front().what == "tokens from 2 on came where token 1 was due");
  BOOST_TEST(answers->front().text == "one");
  BOOST_TEST((*answers)[1].finish == "stop");
}

BOOST_AUTO_TEST_CASE(a_withdrawn_request_ends_as_cancelled) {
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(200));
    cancel = true;
  });
  const auto begun = clock_type::now();
  const auto answers = client->generate({ask("hang")}, {}, cancel);
  later.join();
  BOOST_REQUIRE(answers);
  BOOST_TEST(answers->front().finish == "cancelled");
  BOOST_TEST((clock_type::now() - begun < std::chrono::seconds(5)));
}

BOOST_AUTO_TEST_CASE(a_head_that_dies_is_noticed_at_once) {
  const auto begun = clock_type::now();
  const auto answers = client->generate({ask("hang"), ask("die")}, {}, cancel);
  BOOST_REQUIRE(answers);
  for (const auto& answer : *answers) {
    BOOST_TEST(answer.finish == "error");
    BOOST_TEST(to_string(answer.code) == to_string(errc::unreachable));
    BOOST_TEST(answer.what.find("went away") != std::string::npos);
  }
  BOOST_TEST((clock_type::now() - begun < std::chrono::seconds(5)));
  BOOST_TEST(!client->status(milliseconds(1000)));
  BOOST_TEST(!client->generate({ask("x")}, {}, cancel));
}

BOOST_AUTO_TEST_CASE(a_frozen_head_costs_no_more_than_the_deadline) {
  head.signal(SIGSTOP);
  ::siginfo_t stopped{}; // The signal reaches a busy process a moment later.
  BOOST_REQUIRE(::waitid(P_PID, static_cast<id_t>(head.pid()), &stopped, WSTOPPED | WNOWAIT) == 0);
  const auto begun = clock_type::now();
  const auto status = client->status(milliseconds(500));
  BOOST_REQUIRE(!status);
  BOOST_TEST(to_string(status.error().code) == to_string(errc::timed_out));
  BOOST_TEST((clock_type::now() - begun < std::chrono::seconds(3)));
  head.signal(SIGCONT);
}

BOOST_AUTO_TEST_CASE(the_state_of_the_cluster_is_told) {
  const auto status = client->status(milliseconds(5000));
  BOOST_REQUIRE(status);
  BOOST_TEST(status->cluster == "puppets");
  BOOST_TEST(status->ranks.at(0).links == "shm");
  BOOST_TEST((status->ranks.at(0).gauge.rank == rank_id{3}));
}

BOOST_AUTO_TEST_CASE(stopping_waits_until_the_head_is_gone) {
  BOOST_TEST(!!client->stop("test", milliseconds(10'000)));
  BOOST_REQUIRE(head.wait(patience));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(without_a_head_there_is_nothing_to_connect_to) {
  const tests::temporary_folder folder;
  const auto found = cluster_client::connect(one_node(), folder.path(), milliseconds(1000));
  BOOST_REQUIRE(!found);
  BOOST_TEST(to_string(found.error().code) == to_string(errc::unreachable));
}
