// GET /metrics: the text itself, and counters that move by exactly what was done.

#include "tests/paths.hpp"
#include "tests/support/cluster_commands.hpp"
#include "tests/support/exposition.hpp"
#include "tests/support/http_socket.hpp"
#include "tests/support/serving_cluster.hpp"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <regex>
#include <thread>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

using clock_type = std::chrono::steady_clock;

constexpr double hidden = 64; // of small_model()

/// Two stages of two ranks, each a process, for all cases.
struct shared_cluster {
  shared_cluster() : four(shape()), serving(four) {}

  static cluster_shape shape() {
    cluster_shape made;
    made.model = small_model().folder();
    made.pipeline = 2;
    made.tensor = 2;
    made.more = "\n[schedule]\nqueue = 8\n[serve]\nenabled = true\nport = 0\n";
    return made;
  }

  cluster four;
  serving_cluster serving;
};

const shared_cluster& shared() {
  static const shared_cluster one;
  return one;
}

std::uint16_t port() {
  return shared().serving.http_port();
}

exposition scrape() {
  const auto found = ask_http(port(), "/metrics");
  BOOST_REQUIRE(found.status == 200u);
  BOOST_TEST(found.headers.at("content-type") == "text/plain; version=0.0.4; charset=utf-8");
  auto read = read_exposition(found.body);
  BOOST_TEST(read.mistakes.empty(), read.mistakes.front());
  return read;
}

/// Counters of ranks come with their beats: read when all have done the same rows twice.
exposition scrape_settled() {
  const auto until = clock_type::now() + 10s;
  for (auto last = scrape(); clock_type::now() < until;) {
    std::this_thread::sleep_for(400ms);
    auto next = scrape();
    const auto rows = [](const exposition& of) { return of.sum("troupe_rank_rows_total"); };
    if (rows(last) == rows(next) && next.at("troupe_requests_running") == 0)
      return next;
    last = std::move(next);
  }
  BOOST_FAIL("the counters do not come to rest");
  return {};
}

std::string rank_labels(int rank) {
  return fmt::format(
    R"({{rank="{}",stage="{}",tensor="{}",node="n{}"}})", rank, rank / 2, rank % 2, rank);
}

/// What the page is told of a rank.
json overview() {
  http_socket watching(port());
  watching.ask("/events");
  BOOST_REQUIRE(watching.receive_header());
  auto told = json::parse(watching.next_event().value_or(""), nullptr, false);
  BOOST_REQUIRE(told.is_object());
  return told;
}

json post(const json& body, unsigned status = 200) {
  const auto found = ask_http(port(), "/v1/completions", body.dump());
  BOOST_TEST(found.status == status, found.body);
  return json::parse(found.body, nullptr, false);
}

json wish(std::size_t prompt, std::size_t tokens) {
  return {{"prompt", random_tokens(prompt, 2048, static_cast<unsigned>(prompt))},
          {"max_tokens", tokens},
          {"ignore_eos", true}};
}

} // namespace

BOOST_AUTO_TEST_CASE(the_text_is_what_the_format_and_its_conventions_ask_for) {
  const auto read = scrape();
  BOOST_TEST(read.at("troupe_ready") == 1);
  BOOST_TEST(read.at("troupe_epoch") == 1);
  BOOST_TEST(read.sum("troupe_node_joined") == 4);
  BOOST_TEST(read.sum("troupe_rank_phase") == 4);
  for (const auto& [family, type] : read.types)
    BOOST_TEST((family.starts_with("troupe_") || family.starts_with("process_")), family);
  BOOST_TEST(read.types.at("troupe_first_token_seconds") == "histogram");
  BOOST_TEST(read.at("troupe_first_token_seconds_bucket{le=\"0.1\"}") >= 0);
}

BOOST_AUTO_TEST_CASE(counters_move_by_exactly_what_was_done) {
  const auto before = scrape_settled();
  constexpr double requests = 3;
  constexpr double prompt = 8 + 20 + 5;
  constexpr double tokens = 10 + 4 + 7;
  post(wish(8, 10));
  post(wish(20, 4));
  post(wish(5, 7));
  post(wish(3000, 1), 400);                           // refused by the schedule
  post({{"prompt", "In"}, {"temperature", -1}}, 400); // never came so far
  const auto after = scrape_settled();
  const auto moved = [&](const std::string& name) {
    const auto old = before.samples.find(name); // not there: nobody has asked for that path yet
    return after.at(name) - (old == before.samples.end() ? 0 : old->second);
  };
  const auto moved_by = [&](const std::string& name, double amount) {
    BOOST_TEST(moved(name) == amount, name << " moved by " << moved(name) << ", not " << amount);
  };
  moved_by("troupe_requests_total{outcome=\"finished\"}", requests);
  moved_by("troupe_requests_total{outcome=\"refused\"}", 1);
  moved_by("troupe_requests_total{outcome=\"failed\"}", 0);
  moved_by("troupe_prompt_tokens_total", prompt);
  moved_by("troupe_answer_tokens_total", tokens);
  for (const auto* name : {"queue", "first_token", "request"})
    moved_by(fmt::format("troupe_{}_seconds_count", name), requests);
  moved_by("troupe_between_tokens_seconds_count", tokens - requests);
  // One after another: a step for each token, the whole prompt in the first.
  const double rows = prompt + tokens - requests;
  moved_by("troupe_steps_total", tokens);
  moved_by("troupe_step_rows_count", tokens);
  moved_by("troupe_step_rows_sum", rows);
  moved_by("troupe_step_requests_sum", tokens);
  const auto ranks = overview().at("ranks");
  for (int rank = 0; rank < 4; ++rank) {
    const auto labels = rank_labels(rank);
    const bool first_stage = rank < 2;
    moved_by("troupe_rank_steps_total" + labels, tokens);
    moved_by("troupe_rank_rows_total" + labels, rows);
    moved_by("troupe_rank_boundary_messages_total" + labels, first_stage ? tokens : 0);
    moved_by("troupe_rank_boundary_bytes_total" + labels,
             first_stage ? rows * hidden * sizeof(float) + tokens * 96 : 0);
    // Two reductions a layer; beside them the embedding's, or the head's gather.
    const auto layers = ranks.at(rank).at("layers");
    const auto a_pass = 2 * (layers.at(1).get<double>() - layers.at(0).get<double>()) + 1;
    moved_by("troupe_rank_collectives_total" + labels, tokens * a_pass);
    // All over hidden rows, but for the gather: a logit and an id of each rank.
    const auto gathered = first_stage ? 0 : tokens * 2 * 8;
    moved_by("troupe_rank_collective_bytes_total" + labels,
             rows * hidden * sizeof(float) * (a_pass - (first_stage ? 0 : 1)) + gathered);
    BOOST_TEST(moved("troupe_rank_compute_seconds_total" + labels) > 0);
    BOOST_TEST(moved("troupe_rank_collective_seconds_total" + labels) > 0);
    BOOST_TEST(moved("troupe_rank_wait_seconds_total" + labels) > 0);
    if (first_stage || rank % 2 == 0) // the other sends nothing at all
      BOOST_TEST(moved("troupe_rank_send_seconds_total" + labels) > 0);
  }
  moved_by("troupe_http_answers_total{path=\"/v1/completions\",code=\"200\"}", requests);
  moved_by("troupe_state_pages_used", 0);
}

BOOST_AUTO_TEST_CASE(whole_logits_are_gathered_where_they_are_looked_at_with_the_same_tokens) {
  constexpr double rows = 6 + 12 - 1, tokens = 12;
  // What a request moves in the last stage's group beside the sums, and its text.
  const auto gathered = [&](const json& change) {
    auto body = wish(6, 12);
    body.update(change);
    const auto labels = rank_labels(2);
    const auto name = "troupe_rank_collective_bytes_total" + labels;
    const auto before = scrape_settled().at(name);
    const auto answer = post(body);
    const auto layers = overview().at("ranks").at(2).at("layers");
    const auto sums = 2 * (layers.at(1).get<double>() - layers.at(0).get<double>());
    return std::pair{scrape_settled().at(name) - before - sums * rows * hidden * sizeof(float),
                     answer.at("choices").at(0).at("text")};
  };
  constexpr double pair = 2 * 8, whole = 2048 * sizeof(float);
  for (const json& chosen :
       {json{{"temperature", 0}},
        json{{"temperature", 1.2}, {"top_k", 40}, {"top_p", 0.9}, {"seed", 3}}}) {
    const auto few = gathered(chosen);
    BOOST_TEST(few.first == tokens * pair * chosen.value("top_k", 1));
    auto odds = chosen;
    odds["logprobs"] = 1;
    const auto all = gathered(odds);
    BOOST_TEST(all.first == tokens * whole);
    BOOST_TEST(few.second == all.second);
    for (const json& change :
         {json{{"logit_bias", {{"5", -100}}}}, json{{"presence_penalty", 0.5}}}) {
      auto changed = chosen;
      changed.update(change);
      BOOST_TEST(gathered(changed).first == tokens * whole);
    }
  }
  BOOST_TEST(gathered({{"temperature", 1}}).first == tokens * whole); // all may be drawn
}

BOOST_AUTO_TEST_CASE(clients_that_leave_and_strangers_are_counted_without_new_names) {
  const auto before = scrape_settled();
  {
    http_socket leaving(port());
    auto body = wish(4, 1500);
    body["stream"] = true;
    leaving.ask("/v1/completions", body.dump());
    BOOST_REQUIRE(leaving.receive_header());
    BOOST_REQUIRE(leaving.next_event());
  }
  ask_http(port(), "/secret/17");
  ask_http(port(), "/secret/18");
  const auto after = scrape_settled();
  const std::string cancelled = "troupe_requests_total{outcome=\"cancelled\"}";
  BOOST_TEST(after.at(cancelled) - before.at(cancelled) == 1);
  BOOST_TEST(after.at("troupe_http_left_total{path=\"/v1/completions\"}") == 1);
  BOOST_TEST(after.at("troupe_http_answers_total{path=\"other\",code=\"404\"}") == 2);
}

BOOST_AUTO_TEST_CASE(a_loss_and_its_repair_are_counted_and_told) {
  const auto before = scrape_settled();
  // The fault that does no harm is counted where it happened.
  const auto slow = shared().four.run({"inject",
                                       "FILE",
                                       "--what",
                                       "slow",
                                       "--where",
                                       "rank 1",
                                       "--when",
                                       "step 1",
                                       "--steps",
                                       "1",
                                       "--factor",
                                       "2"});
  BOOST_TEST(slow.code == 0, slow.all());
  post(wish(6, 4));
  const auto slowed = scrape_settled();
  const auto faults = "troupe_rank_faults_injected_total" + rank_labels(1);
  BOOST_TEST(slowed.at(faults) - before.at(faults) == 1);
  const auto kill = shared().four.run(
    {"inject", "FILE", "--what", "kill", "--where", "rank 3", "--when", "step 5"});
  BOOST_TEST(kill.code == 0, kill.all());
  post(wish(40, 12)); // it loses a rank in the middle, and the cluster starts that again
  const auto after = scrape_settled();
  BOOST_TEST(after.at("troupe_epochs_lost_total") - before.at("troupe_epochs_lost_total") >= 1);
  BOOST_TEST(after.at("troupe_recoveries_total") - before.at("troupe_recoveries_total") >= 1);
  BOOST_TEST(after.at("troupe_epoch") > before.at("troupe_epoch"));
  // The lost stage got back what was committed: the prompt at least.
  BOOST_TEST(after.at("troupe_rank_rows_replayed_total" + rank_labels(3)) >= 40);
  BOOST_TEST(after.at("troupe_rank_rows_replayed_total" + rank_labels(0))
             == before.at("troupe_rank_rows_replayed_total" + rank_labels(0)));
  const auto told = overview();
  BOOST_TEST(told.at("recoveries") == after.at("troupe_recoveries_total"));
  const auto& last = told.at("events").back();
  BOOST_TEST(last.at("what").get<std::string>().find("n3") != std::string::npos, last.dump());
  BOOST_TEST(last.at("done").get<std::string>().find("serves with 4 ranks") != std::string::npos,
             last.dump());
}

BOOST_AUTO_TEST_CASE(the_dashboard_names_metrics_that_exist) {
  std::ifstream in(std::string(TROUPE_SOURCE_DIR) + "/docs/grafana.json");
  const auto board = json::parse(in, nullptr, false);
  BOOST_REQUIRE(board.is_object());
  const auto read = scrape();
  std::set<std::string> known;
  for (const auto& [family, type] : read.types)
    known.insert(family);
  for (const auto& [sample, value] : read.samples)
    known.insert(sample.substr(0, sample.find('{')));
  const std::regex metric("(troupe|process)_[a-z_]+");
  std::size_t expressions = 0;
  for (const auto& panel : board.at("panels"))
    for (const auto& target : panel.value("targets", json::array())) {
      const auto text = target.at("expr").get<std::string>();
      ++expressions;
      std::size_t named = 0;
      for (std::sregex_iterator at(text.begin(), text.end(), metric), end; at != end; ++at) {
        ++named;
        BOOST_TEST(known.contains(at->str()), at->str() << " of the dashboard does not exist");
      }
      BOOST_TEST(named > 0u, text);
    }
  BOOST_TEST(expressions >= 15u);
}
