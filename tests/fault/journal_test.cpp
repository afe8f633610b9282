// The head's own process dies: with a journal, what it had taken goes on.

#include "tests/support/crew.hpp"

#include <boost/test/unit_test.hpp>

#include <csignal>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;

namespace {

cluster_shape journaled(std::size_t pipeline, const std::filesystem::path& journal) {
  static const served_model model{[] {
    compute::random_model wanted;
    wanted.layers = 4;
    return wanted;
  }()};
  cluster_shape shape;
  shape.model = model.folder();
  shape.pipeline = pipeline;
  shape.more = "[recovery]\nrestart_pause_ms = 50\njournal = \"" + journal.string() + "\"\n";
  return shape;
}

} // namespace

BOOST_AUTO_TEST_CASE(E41_requests_go_on_and_streams_with_them_after_the_head_was_killed) {
  const temporary_folder place;
  const cluster two{journaled(2, place / "head.journal")};
  const auto lines = some_requests(3, 1500);
  const auto expected = two.generate(lines); // its own cluster, the same journal
  auto up = two.start({"up", "FILE"});
  BOOST_REQUIRE(status_becomes(two, serving, 30s));
  background_requests requests{two, lines};
  for (int time = 0; time < 2; ++time) {
    BOOST_REQUIRE(status_becomes(two, "\"running\":3", 20s));
    std::this_thread::sleep_for(300ms);
    const auto before = process_of(two, "n0");
    const auto other = process_of(two, "n1");
    ::kill(before, SIGKILL);
    std::this_thread::sleep_for(500ms);
    BOOST_REQUIRE(status_becomes(two, serving, 30s));
    BOOST_TEST(process_of(two, "n0") != before);
    BOOST_TEST(process_of(two, "n1") == other); // its shard is still loaded
  }
  requests.compare(expected);
  up.signal(SIGINT);
  BOOST_TEST(up.wait(30s).has_value());
}

BOOST_AUTO_TEST_CASE(a_journal_of_another_model_is_refused) {
  const temporary_folder place;
  const cluster first{journaled(1, place / "head.journal")};
  first.generate({token_prompt({1, 2, 3}, 4)});
  compute::random_model wanted;
  wanted.layers = 3;
  const served_model other{wanted};
  auto shape = journaled(1, place / "head.journal");
  shape.model = other.folder();
  const cluster second{shape};
  const auto refused = second.try_generate({token_prompt({1, 2, 3}, 4)});
  BOOST_TEST(refused.code != 0);
  BOOST_TEST(refused.mentions("recovery.journal"), refused.all());
  BOOST_TEST(refused.mentions("belongs to another model"), refused.all());
  const auto nowhere = first.run(
    {"generate", "FILE", "--prompt", "In", "--set", "recovery.journal=/nonexistent/journal"}, 30);
  BOOST_TEST(nowhere.code != 0);
  BOOST_TEST(nowhere.mentions("/nonexistent/journal"), nowhere.all());
}
