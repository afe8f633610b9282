// Who may read a stream: the client that asked for it, and after it nobody else but where a journal
// keeps what it said.

#include "actors/control/run_folder.hpp"
#include "actors/control/system.hpp"
#include "config/cluster_file.hpp"
#include "tests/support/cluster_commands.hpp"
#include "tests/support/serving_cluster.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <optional>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::tests;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds patience{10'000};
constexpr std::uint32_t many_tokens = 1500;

/// The door of a cluster that serves on this host.
struct way_in {
  explicit way_in(const cluster& where) {
    ::setenv("XDG_RUNTIME_DIR", where.folder().path().c_str(), 1);
    const auto settings = read_cluster_file(where.file());
    BOOST_REQUIRE(settings);
    const auto head = read_control(run_folder_for(*settings));
    BOOST_REQUIRE(head);
    auto made = control_plane::start(*settings);
    BOOST_REQUIRE(made);
    control = std::move(*made);
    const auto found = control->connect("127.0.0.1", head->port, patience);
    BOOST_REQUIRE(found);
    door = *found;
  }

  std::unique_ptr<control_plane> control;
  gateway_actor door;
};

/// Asks the door in the name of a client; the request, or why not.
template <class Question>
result<request_id> ask(way_in& in, caf::scoped_actor& client, Question question) {
  result<request_id> answer = error{errc::timed_out, "no answer"};
  client
    ->request(
      in.door, patience, std::move(question), caf::actor_cast<caf::strong_actor_ptr>(client))
    .receive([&](request_id id) { answer = id; },
             [&](const caf::error& why) { answer = from_caf(in.control->system(), why); });
  return answer;
}

struct heard {
  std::vector<token_id> tokens;
  bool in_order = true;
  bool ended = false;
};

/// Everything that comes to a client until its request ends.
heard listen(caf::scoped_actor& client) {
  heard all;
  bool silent = false;
  while (!all.ended && !silent)
    client->receive(
      [&](const text_piece& piece) {
        all.in_order = all.in_order && piece.first == all.tokens.size();
        all.tokens.insert(all.tokens.end(), piece.tokens.begin(), piece.tokens.end());
      },
      [&](const request_end&) { all.ended = true; },
      caf::after(patience) >> [&] { silent = true; });
  return all;
}

generate_request long_request() {
  generate_request wish;
  wish.tokens = {1, 2, 3};
  wish.max_tokens = many_tokens;
  wish.ignore_end = true;
  return wish;
}

cluster_shape two_stages(const std::string& more) {
  cluster_shape shape;
  shape.model = small_model().folder();
  shape.pipeline = 2;
  shape.more = more;
  return shape;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_stream_that_is_read_is_given_to_nobody_else) {
  const temporary_folder place;
  const cluster where{
    two_stages("[recovery]\njournal = \"" + (place / "head.journal").string() + "\"\n")};
  const serving_cluster serving{where};
  way_in in{where};
  caf::scoped_actor reader{in.control->system()};
  caf::scoped_actor other{in.control->system()};
  const auto request = ask(in, reader, long_request());
  BOOST_REQUIRE(request);
  const auto refused = ask(in, other, stream_attach{*request, 0});
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().what.find("is being read by another client") != std::string::npos,
             refused.error().what);
  const auto all = listen(reader);
  BOOST_TEST((all.ended && all.in_order));
  BOOST_TEST(all.tokens.size() == many_tokens);
  // Once it has ended, the journal has it for whoever lost it.
  BOOST_REQUIRE(ask(in, other, stream_attach{*request, 0}));
  BOOST_TEST(listen(other).tokens == all.tokens, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(without_a_journal_no_stream_is_read_on) {
  const cluster where{two_stages({})};
  const serving_cluster serving{where};
  way_in in{where};
  caf::scoped_actor reader{in.control->system()};
  caf::scoped_actor other{in.control->system()};
  const auto request = ask(in, reader, long_request());
  BOOST_REQUIRE(request);
  const auto refused = ask(in, other, stream_attach{*request, 0});
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().what.find("recovery.journal is not set") != std::string::npos,
             refused.error().what);
  BOOST_TEST(listen(reader).tokens.size() == many_tokens);
}
