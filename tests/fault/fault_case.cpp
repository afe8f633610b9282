#include "tests/fault/fault_case.hpp"

#include "tests/support/cluster_commands.hpp"
#include "tests/support/page_part.hpp"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <thread>

namespace troupe::tests {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

namespace {

/// A case that takes longer hangs.
constexpr auto bound_of_a_case = 40s;
constexpr auto between_looks = 3ms;

/// Short bounds, so that many cases fit into a minute; a fault that changes nothing, so that wires
/// and devices are those that can meet further ones at once.
const std::string settings_of_a_case =
  "[deadlines]\nprogress_ms = 1000\nconnect_ms = 1500\nstep_ms = 10000\n"
  "[[fault]]\nwhat = \"slow\"\nwhere = \"rank 0\"\nfactor = 1\nsteps = 1\n";

cluster_shape shape_of(const fault_shape& wanted, const std::string& more = {}) {
  cluster_shape shape;
  shape.model = small_model().folder();
  shape.pipeline = wanted.pipeline;
  shape.tensor = wanted.tensor;
  shape.more = settings_of_a_case + more;
  if (!wanted.transports.empty())
    shape.node_more = "transports = \"" + wanted.transports + "\"\n";
  return shape;
}

/// The same, with each node on its host.
cluster_shape place_of(const fault_shape& wanted, const std::string& more) {
  auto shape = shape_of(wanted, more);
  if (!is_apart(wanted))
    return shape;
  shape.network = std::make_shared<const lan>(wanted.ranks());
  shape.node_more = "transports = \"tcp,self\"\n";
  return shape;
}

/// Prompts of two chunks, and answers that are long enough to lose something in.
const std::vector<std::string>& case_requests() {
  static const std::vector<std::string> lines = [] {
    std::vector<std::string> made;
    for (unsigned i = 0; i < 3; ++i)
      made.push_back(token_prompt(random_tokens(90 + 10 * i, 2048, i), 60));
    return made;
  }();
  return lines;
}

using wall_clock = std::chrono::system_clock;

wall_clock::time_point to_system(test_clock::time_point when) {
  return wall_clock::now()
         + std::chrono::duration_cast<wall_clock::duration>(when - test_clock::now());
}

test_clock::time_point from_system(wall_clock::time_point when) {
  return test_clock::now() + (when - wall_clock::now());
}

/// Lines of the fault books below a folder, but for that of the fault that changes nothing, and the
/// time of the newest book that has any: it is written just before a fault happens.
struct fault_books {
  std::size_t lines = 0;
  std::optional<wall_clock::time_point> newest;
};

fault_books read_books(const std::filesystem::path& folder) {
  fault_books found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{folder}) {
    if (entry.path().extension() != ".faults")
      continue;
    std::ifstream in{entry.path()};
    std::size_t lines = 0;
    for (std::string line; std::getline(in, line);)
      lines += line.starts_with("run ") || line.find(" slow at ") != std::string::npos ? 0 : 1;

    struct stat about {};

    if (lines == 0 || ::stat(entry.path().c_str(), &about) != 0)
      continue;
    const wall_clock::time_point when{std::chrono::seconds{about.st_mtim.tv_sec}
                                      + std::chrono::microseconds{about.st_mtim.tv_nsec / 1000}};
    found.lines += lines;
    found.newest = found.newest ? std::max(*found.newest, when) : when;
  }
  return found;
}

/// The moment that a line of a log begins with ("17:25:48.865 ..."), on the day of `near`.
std::optional<wall_clock::time_point> moment_of(const std::string& line,
                                                wall_clock::time_point near) {
  const auto day = wall_clock::to_time_t(near);
  std::tm parts{};
  int ms = 0;
  ::localtime_r(&day, &parts);
  if (std::sscanf(
        line.c_str(), "%2d:%2d:%2d.%3d", &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &ms)
      != 4)
    return std::nullopt;
  return wall_clock::from_time_t(std::mktime(&parts)) + milliseconds{ms};
}

/// When the head said first after a moment that an epoch or a node is lost.
std::optional<wall_clock::time_point> first_end_after(wall_clock::time_point moment,
                                                      const std::string& log) {
  constexpr auto clock_of_files = 5ms; // A file's time is that of the last tick.
  std::istringstream in{log};
  for (std::string line; std::getline(in, line);) {
    if (line.find(" is over: ") == std::string::npos
        && line.find(" is gone: ") == std::string::npos)
      continue;
    if (const auto when = moment_of(line, moment); when && *when + clock_of_files >= moment)
      return when;
  }
  return std::nullopt;
}

milliseconds between(wall_clock::time_point from, wall_clock::time_point to) {
  return std::max(std::chrono::duration_cast<milliseconds>(to - from), 0ms);
}

/// Requests that have no end, or another one than theirs.
std::size_t lost_among(const std::vector<told_answer>& found,
                       const std::vector<told_answer>& expected,
                       bool one_may_fail) {
  std::size_t lost = expected.size() - std::min(found.size(), expected.size());
  std::size_t failed = 0;
  for (std::size_t i = 0; i < found.size() && i < expected.size(); ++i) {
    const bool is_own_fault = found[i].what.find("not a finite number") != std::string::npos;
    const auto& tokens = found[i].digests;
    const bool begins_alike =
      tokens.size() <= expected[i].digests.size()
      && std::equal(tokens.begin(), tokens.end(), expected[i].digests.begin());
    failed += is_own_fault ? 1 : 0;
    lost += begins_alike && (is_own_fault || found[i].finish == "length") ? 0 : 1;
    const auto told = fmt::format(
      "request {}: {} after {} tokens; {}", i, found[i].finish, tokens.size(), found[i].what);
    BOOST_TEST(begins_alike, told);
    BOOST_TEST((is_own_fault || found[i].finish == "length"), told);
  }
  BOOST_TEST(failed == (one_may_fail ? 1u : 0u));
  return lost;
}

} // namespace

std::string to_string(fault_at when) {
  switch (when) {
  case fault_at::load: return "load";
  case fault_at::prefill: return "prefill";
  case fault_at::decode: return "decode";
  case fault_at::recovery: return "recovery";
  }
  return {};
}

const std::vector<fault_shape>& fault_shapes() {
  static const std::vector<fault_shape> shapes{
    {"PP 2", 2, 1, 1, 1, "rank 0 -> rank 1", "rank 1 -> conductor", "", false},
    {"PP 3", 3, 1, 1, 2, "rank 0 -> rank 1", "rank 1 -> rank 2", "", true},
    {"TP 2", 1, 2, 1, 1, "rank 0 -> rank 1", "rank 1 -> rank 0", "tcp,self", true},
    {"PP 2 x TP 2", 2, 2, 2, 3, "rank 0 -> rank 2", "rank 2 -> conductor", "", false}};
  return shapes;
}

bool is_apart(const fault_shape& shape) {
  return (shape.apart || has_test_option("apart")) && why_no_hosts().empty();
}

bool is_possible(const fault_case& one) {
  return one.what != "nan" || one.when != fault_at::load;
}

namespace {

/// What an unharmed cluster of that shape answers.
const std::vector<told_answer>& expected_of(const fault_shape& shape) {
  static std::map<std::string, std::vector<told_answer>> known;
  auto& answers = known[shape.name];
  if (answers.empty())
    answers = cluster{shape_of(shape)}.generate(case_requests());
  return answers;
}

std::string victim_of(const fault_shape& shape, const fault_case& one) {
  // While it is being replaced a node is lost once more, or another one with it.
  const auto who = one.when == fault_at::recovery ? shape.second : shape.victim;
  if (one.what == "kill")
    return fmt::format("rank {}", who);
  if (one.what == "stop")
    return fmt::format("node n{}", who);
  if (one.what == "cut")
    return shape.link_from;
  if (one.what == "drop" || one.what == "corrupt")
    return shape.link_to;
  return fmt::format("rank {}", shape.victim);
}

std::string moment_of(const fault_case& one) {
  const bool loses_a_process = one.what == "kill" || one.what == "stop";
  switch (one.when) {
  case fault_at::load:
    if (loses_a_process)
      return "load 50";
    return one.what == "refuse_allocation" ? "load" : "message 1";
  case fault_at::prefill: return "step 2";
  case fault_at::decode: return "step 20";
  case fault_at::recovery: break;
  }
  if (loses_a_process)
    return "phase joining";
  if (one.what == "refuse_allocation")
    return "load";
  if (one.what == "nan")
    return "step 1";  // of its new life: a replay
  return "message 1"; // of the epoch that follows
}

fault_settings settings_for(const fault_shape& shape, const fault_case& one) {
  fault_settings made;
  made.what = one.what;
  made.where = victim_of(shape, one);
  made.when = moment_of(one);
  return made;
}

std::string text_of(const fault_settings& one) {
  return fmt::format(
    "[[fault]]\nwhat = \"{}\"\nwhere = \"{}\"\nwhen = \"{}\"\n", one.what, one.where, one.when);
}

std::string ending_of(const fault_case& one) {
  return one.what == "nan" ? "one request: a value is not a finite number" : "all as unharmed";
}

} // namespace

// -- a cluster that serves ------------------------------------------------------------------------

fault_rig::fault_rig(const fault_shape& shape, const std::string& more)
  : shape_(shape), where_(place_of(shape, more)), nodes_(where_, shape.ranks()), watch_(where_) {}

std::string fault_rig::words() const {
  std::string all;
  for (std::size_t node = 0; node < nodes_.size(); ++node)
    all += fmt::format("-- n{}\n{}", node, nodes_.words(node));
  return all;
}

/// What an operator, or a service manager, does: nodes that ended are started again; one that
/// stands still, or cannot reach the others, is replaced once the cluster has given it up.
void fault_rig::repair(const fault_case& one, const std::function<bool()>& done) {
  const auto until = test_clock::now() + bound_of_a_case;
  bool mended = false;
  while (test_clock::now() < until) {
    nodes_.tend();
    const auto now = watch_.look();
    if (now && now->serves() && done())
      return;
    if (now && one.what == "stop")
      for (std::size_t node = 1; node < nodes_.size(); ++node)
        if (now->lost(fmt::format("n{}", node)) && nodes_.stands_still(node))
          nodes_.replace(node);
    if (now && one.what == "cut" && !mended && now->phase == "gathering" && has_happened()) {
      nodes_.signal(shape_.victim, SIGKILL);
      mended = true;
    }
    std::this_thread::sleep_for(between_looks);
  }
  BOOST_REQUIRE_MESSAGE(false,
                        "the requests have no end, or the cluster does not serve again\n"
                          << words());
}

bool fault_rig::has_happened() const {
  return read_books(where_.folder().path()).lines > booked_;
}

/// Kills the victim while it is at work; returns when the cluster knows, and before there is
/// another one.
void fault_rig::lose_victim(const live_requests& requests) {
  const auto until = test_clock::now() + 10s;
  while (requests.pieces() < 30 && test_clock::now() < until)
    std::this_thread::sleep_for(between_looks);
  nodes_.signal(shape_.victim, SIGKILL);
  const auto name = fmt::format("n{}", shape_.victim);
  BOOST_REQUIRE(watch_.look_until([&](const sight& now) { return now.lost(name); }, 5s));
}

case_result fault_rig::run(const fault_case& one) {
  const auto expected = expected_of(shape_);
  repair({}, [] { return true; });
  booked_ = read_books(where_.folder().path()).lines;
  const auto rows_before = replayed();
  std::optional<live_requests> requests;
  if (one.when == fault_at::recovery) {
    requests.emplace(where_, case_requests());
    lose_victim(*requests);
  }
  const auto receipt = watch_.inject(settings_for(shape_, one));
  BOOST_REQUIRE_MESSAGE(receipt, (receipt ? std::string{} : receipt.error().what));
  if (!requests)
    requests.emplace(where_, case_requests());
  repair(one, [&] { return requests->done(); });
  BOOST_TEST(has_happened(), words());
  auto got = judge(one, *requests);
  got.lost = lost_among(requests->answers(), expected, one.what == "nan");
  got.rows_again = 0;
  for (const auto& [process, rows] : replayed()) {
    const auto before = rows_before.find(process);
    got.rows_again += rows - (before == rows_before.end() ? 0 : before->second);
  }
  const auto wrong = nodes_.wake();
  BOOST_TEST(wrong.empty(), wrong << "\n" << words());
  return got;
}

/// Rows that were computed again, by the process that did it.
std::map<pid_t, std::uint64_t> fault_rig::replayed() {
  std::this_thread::sleep_for(250ms); // a beat
  std::map<pid_t, std::uint64_t> rows;
  if (const auto now = watch_.look())
    for (std::size_t rank = 0; rank < now->ranks.size(); ++rank)
      rows[nodes_.pid(rank)] = now->ranks[rank].rows_replayed;
  return rows;
}

/// The times, from the moment that the fault's book tells to that which the head's log tells.
case_result fault_rig::judge(const fault_case& one, const live_requests& requests) const {
  case_result got;
  got.ending = ending_of(one);
  const auto begun = read_books(where_.folder().path()).newest;
  const auto noticed = begun ? first_end_after(*begun, nodes_.words(0)) : std::nullopt;
  if (!noticed)
    return got;
  got.noticed = between(*begun, *noticed);
  if (const auto next = requests.first_after(from_system(*noticed)))
    got.resumed = between(*noticed, to_system(*next));
  return got;
}

// -- one that starts ------------------------------------------------------------------------------

case_result fault_rig::start(const fault_case& one) {
  const auto expected = expected_of(shape_);
  if (one.what == "refuse_allocation") {
    case_result got;
    got.ending = "the start ends with exit code 4 and the reason";
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const auto end = nodes_.ended(node, 20s);
      BOOST_TEST((end && end->exited && end->code == 4), words());
    }
    BOOST_TEST(words().find("was refused on purpose") != std::string::npos, words());
    return got;
  }
  repair(one, [] { return true; });
  live_requests requests{where_, case_requests()}; // the first frames of each link are theirs
  repair(one, [&] { return requests.done(); });
  BOOST_TEST(has_happened(), words());
  auto got = judge(one, requests);
  got.lost = lost_among(requests.answers(), expected, false);
  for (const auto& [process, rows] : replayed())
    got.rows_again += rows;
  const auto wrong = nodes_.wake();
  BOOST_TEST(wrong.empty(), wrong << "\n" << words());
  return got;
}

case_result run_at_start(const fault_shape& shape, const fault_case& one) {
  fault_rig fresh{shape, text_of(settings_for(shape, one))};
  return fresh.start(one);
}

} // namespace troupe::tests
