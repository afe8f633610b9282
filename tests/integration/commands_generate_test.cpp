// `troupe generate` as people use it: on a cluster of its own and on one that runs, with text and
// JSON, many at once, interrupted, and with nobody listening.
#include "tests/support/cluster_commands.hpp"

#include <boost/test/unit_test.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace troupe;
using namespace troupe::tests;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const std::string two_nodes = R"(
[model]
path = "demo"
[parallel]
pipeline = 2
[[node]]
name = "a"
threads = 1
[[node]]
name = "b"
threads = 1
)";

const std::vector<std::string> short_answer{"--prompt", "In the beginning", "--max-tokens", "12"};

// Run folders of clusters that this cluster file's user started.
bool left_something(const cluster& used) {
  const auto base = used.folder() / ("troupe-" + std::to_string(::getuid()));
  return std::filesystem::exists(base) && !std::filesystem::is_empty(base);
}

} // namespace

BOOST_AUTO_TEST_CASE(the_demo_needs_no_file) {
  const cluster here(two_nodes); // Only for its folder.
  const auto ran = here.run(with({"generate"}, short_answer));
  BOOST_TEST(ran.code == 0, ran.all());
  BOOST_TEST(ran.mentions("4 ranks (2 stages x 2 tensor)"), ran.all());
  BOOST_TEST(ran.mentions("tokens/s"), ran.all());
  BOOST_TEST(ran.mentions("per token and boundary"), ran.all());
  BOOST_TEST(ran.mentions("transports: "), ran.all());
  BOOST_TEST(!left_something(here));
}

BOOST_AUTO_TEST_CASE(quiet_means_nothing_but_the_text) {
  const cluster here(two_nodes);
  const auto loud = here.run(with({"generate", "FILE"}, short_answer));
  const auto quiet = here.run(with({"generate", "FILE", "-q"}, short_answer));
  BOOST_REQUIRE(quiet.code == 0);
  BOOST_REQUIRE(quiet.lines.size() == 1u);
  BOOST_TEST(!quiet.lines.front().empty());
  BOOST_TEST(loud.mentions(quiet.lines.front()));
  const auto echoed = here.run(with({"generate", "FILE", "-q", "--echo"}, short_answer));
  BOOST_TEST(echoed.all() == "In the beginning" + quiet.lines.front());
}

BOOST_AUTO_TEST_CASE(the_prompt_may_come_from_standard_input) {
  const cluster here(two_nodes);
  auto child = here.start({"generate", "FILE", "-q", "--max-tokens", "12"});
  child.say("In the beginning");
  child.finish_input();
  const auto lines = child.hear_all(seconds(60));
  const auto given = here.run(with({"generate", "FILE", "-q"}, short_answer));
  BOOST_TEST(lines == given.lines);
}

BOOST_AUTO_TEST_CASE(many_prompts_keep_their_order_and_their_answers) {
  const cluster here(two_nodes);
  const auto prompts = here.folder() / "prompts";
  std::ofstream(prompts) << "In the beginning\n\n"
                         << R"({"prompt": "And the LORD said", "max_tokens": 3})"
                         << "\n"
                         << "In the beginning\n";
  const auto text =
    here.run({"generate", "FILE", "-q", "--prompts-file", prompts.string(), "--max-tokens", "12"});
  const auto alone = here.run(with({"generate", "FILE", "-q"}, short_answer));
  BOOST_REQUIRE(text.code == 0);
  BOOST_REQUIRE(text.lines.size() == 3u);
  BOOST_TEST(text.lines[0] == alone.lines.front()); // G04: alone and among others, the same.
  BOOST_TEST(text.lines[2] == alone.lines.front());
  BOOST_TEST(text.lines[1] != text.lines[0]);
  const auto json = read_answers(
    here.run({"generate", "FILE", "-q", "--json", "--prompts-file", prompts.string()}).lines);
  BOOST_REQUIRE(json.size() == 3u);
  BOOST_TEST(json[1].tokens.size() == 3u);
  BOOST_TEST(json[1].text == text.lines[1]);
  BOOST_TEST(json[1].finish == "length");
  BOOST_TEST(json[1].logprobs.size() == 3u);
  BOOST_TEST(json[1].digests.empty());
}

BOOST_AUTO_TEST_CASE(A09_every_option_of_sampling_has_an_effect) {
  const cluster here(two_nodes);
  const auto base = here.run(with({"generate", "FILE", "-q"}, short_answer));
  BOOST_REQUIRE(base.code == 0);
  BOOST_REQUIRE(base.lines.size() == 1u);
  const auto differs = [&](const std::vector<std::string>& more) {
    const auto ran = here.run(with(with({"generate", "FILE", "-q"}, short_answer), more));
    BOOST_TEST(ran.code == 0, ran.all());
    return ran.lines != base.lines;
  };
  BOOST_TEST(differs({"--temperature", "1.5", "--seed", "3"}));
  BOOST_TEST(!differs({"--temperature", "1.5", "--seed", "3", "--top-k", "1"}));
  BOOST_TEST(!differs({"--temperature", "1.5", "--seed", "3", "--top-p", "0"}));
  BOOST_TEST(!differs({"--temperature", "1.5", "--seed", "3", "--min-p", "1"}));
  BOOST_TEST(differs({"--repetition-penalty", "5"}));
  BOOST_TEST(differs({"--presence-penalty", "2", "--frequency-penalty", "2"}));
  BOOST_TEST(differs({"--stop", base.lines.front().substr(4, 3)}));
  const auto shorter =
    here.run({"generate", "FILE", "-q", "--prompt", short_answer[1], "--max-tokens", "3"});
  BOOST_TEST(shorter.lines != base.lines);
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_text_and_another_one_another) {
  const cluster here(two_nodes);
  const auto with_seed = [&](const std::string& seed) {
    return here
      .run(with({"generate", "FILE", "-q", "--temperature", "1", "--seed", seed}, short_answer))
      .lines;
  };
  const auto one = with_seed("1");
  BOOST_TEST(one == with_seed("1"));
  BOOST_TEST(one != with_seed("2"));
}

BOOST_AUTO_TEST_CASE(A13_three_at_once_do_not_meet) {
  const cluster here(two_nodes);
  std::vector<test::process> running;
  for (int i = 0; i < 3; ++i) {
    running.push_back(here.start(with({"generate", "FILE", "-q"}, short_answer)));
    running.back().finish_input();
  }
  std::vector<std::string> first;
  for (auto& one : running) {
    const auto lines = one.hear_all(seconds(90));
    const auto ended = one.wait(seconds(20));
    BOOST_REQUIRE(ended);
    BOOST_TEST(ended->code == 0);
    BOOST_REQUIRE(lines.size() == 1u);
    if (first.empty())
      first = lines;
    BOOST_TEST(lines == first);
  }
  BOOST_TEST(!left_something(here));
}

BOOST_AUTO_TEST_CASE(mistakes_cost_no_start_and_are_said_once) {
  const cluster here(two_nodes);
  const auto check = [&](const std::vector<std::string>& more, int code, const std::string& words) {
    const auto begun = std::chrono::steady_clock::now();
    const auto ran = here.run(with({"generate", "FILE"}, more));
    BOOST_TEST(ran.code == code, ran.all());
    BOOST_TEST(ran.mentions(words), ran.all());
    BOOST_TEST(ran.all().find("troupe: error: ") == ran.all().rfind("troupe: error: "));
    BOOST_TEST((std::chrono::steady_clock::now() - begun < seconds(5)));
  };
  check({"--prompt", "x", "--temperature", "-1"}, 2, "temperature");
  check({"--prompt", "x", "--top-p", "2"}, 2, "top_p");
  check({"--prompt", "x", "--temprature", "1"}, 2, "--temprature");
  check({"--prompts-file", "/no/such/file"}, 3, "/no/such/file");
  check({"--prompt", "x", "--digests"}, 2, "--json");
  check({"--prompt", "x", "--set", "parallel.pipline=2"}, 2, "pipline");
}

BOOST_AUTO_TEST_CASE(a_prompt_that_is_too_long_fails_alone) {
  const cluster here(two_nodes);
  std::string longest = R"({"tokens": [5)";
  for (int i = 0; i < 3000; ++i)
    longest += ", 5";
  const auto ran = here.try_generate({longest + "]}", R"({"prompt": "In", "max_tokens": 4})"});
  BOOST_TEST(ran.code != 0);
  const auto answers = read_answers(ran.lines);
  BOOST_REQUIRE(answers.size() == 2u);
  BOOST_TEST(answers[0].finish == "error");
  BOOST_TEST(!answers[0].what.empty());
  BOOST_TEST(answers[1].finish == "length");
  BOOST_TEST(ran.mentions("troupe: error: prompt 1: "), ran.all());
}

BOOST_AUTO_TEST_CASE(an_interrupt_ends_everything) {
  const cluster here(two_nodes);
  auto child = here.start({"generate",
                           "FILE",
                           "--prompt",
                           "In",
                           "--max-tokens",
                           "2000",
                           "--ignore-end",
                           "--set",
                           "model.context=2048"});
  child.finish_input();
  bool serving = false;
  while (!serving) {
    const auto line = child.hear(seconds(60));
    BOOST_REQUIRE(line);
    serving = line->starts_with("rank 1 ");
  }
  std::this_thread::sleep_for(milliseconds(300));
  const auto begun = std::chrono::steady_clock::now();
  child.signal(SIGINT);
  const auto ended = child.wait(seconds(30));
  BOOST_REQUIRE(ended);
  BOOST_TEST(ended->exited);
  BOOST_TEST(ended->code == 130);
  BOOST_TEST((std::chrono::steady_clock::now() - begun < seconds(10)));
  BOOST_TEST(!left_something(here));
}

BOOST_AUTO_TEST_CASE(an_interrupt_while_starting_ends_everything) {
  const cluster here(two_nodes + "[deadlines]\njoin_ms = 30000\n");
  auto child = here.start({"generate", "FILE", "--prompt", "In", "--max-tokens", "4"});
  child.finish_input();
  BOOST_REQUIRE(child.hear(seconds(30))); // "starting 2 nodes"
  child.signal(SIGTERM);
  const auto ended = child.wait(seconds(30));
  BOOST_REQUIRE(ended);
  BOOST_TEST(ended->code == 130);
  BOOST_TEST(!left_something(here));
}

BOOST_AUTO_TEST_CASE(D01_nobody_who_reads_means_nobody_who_writes) {
  const cluster here(two_nodes);
  const auto begun = std::chrono::steady_clock::now();
  auto child =
    test::process::run({"/bin/sh",
                        "-c",
                        troupe_program().string() + " generate " + here.file().string()
                          + " --prompt In --max-tokens 2000 --ignore-end -q | head -c 20"},
                       {"XDG_RUNTIME_DIR=" + here.folder().path().string()},
                       true);
  child.finish_input();
  const auto lines = child.hear_all(seconds(60));
  BOOST_TEST(!lines.empty());
  const auto ended = child.wait(seconds(60));
  BOOST_REQUIRE(ended);
  BOOST_TEST((std::chrono::steady_clock::now() - begun < seconds(40)));
  BOOST_TEST(!left_something(here));
}
