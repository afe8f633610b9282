#include "tests/fault/walk.hpp"

#include "tests/support/cluster_commands.hpp"
#include "tests/support/leftovers.hpp"
#include "tests/support/observer.hpp"
#include "tests/support/tended_nodes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <random>
#include <thread>

namespace troupe::tests {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t clients = 8;
constexpr auto between_looks = 10ms;
/// A cluster that does not serve for so long needs a hand: its nodes are started anew.
constexpr auto patience_of_an_operator = 10s;
/// Until a request that finds nobody is refused; one that was taken waits longer.
constexpr auto longest_refusal = 20s;

struct walk_shape {
  std::string name;
  std::size_t pipeline;
  std::size_t tensor;
  std::vector<std::string> links;
  std::string transports;

  std::size_t ranks() const { return pipeline * tensor; }
};

const walk_shape& shape_for(unsigned seed) {
  static const std::vector<walk_shape> shapes{
    {"PP 2 x TP 2",
     2,
     2,
     {"rank 0 -> rank 2", "rank 1 -> rank 3", "rank 2 -> conductor", "conductor -> rank 3"},
     ""},
    {"PP 3",
     3,
     1,
     {"rank 0 -> rank 1", "rank 1 -> rank 2", "rank 2 -> conductor", "conductor -> rank 1"},
     ""},
    {"TP 2", 1, 2, {"rank 0 -> rank 1", "rank 1 -> rank 0", "conductor -> rank 1"}, "tcp,self"}};
  return shapes[seed % shapes.size()];
}

cluster_shape file_for(const walk_shape& wanted, const std::filesystem::path& journal) {
  cluster_shape shape;
  shape.model = small_model().folder();
  shape.pipeline = wanted.pipeline;
  shape.tensor = wanted.tensor;
  shape.more = "[deadlines]\nprogress_ms = 1500\nconnect_ms = 2000\nstep_ms = 10000\n"
               "[schedule]\nqueue = 64\n[[fault]]\nwhat = \"slow\"\nwhere = \"rank 0\"\n"
               "factor = 1\nsteps = 1\n"; // changes nothing, and lets wires meet others at once
  if (!journal.empty())
    shape.more += "[recovery]\njournal = \"" + journal.string() + "\"\n";
  if (!wanted.transports.empty())
    shape.node_more = "transports = \"" + wanted.transports + "\"";
  return shape;
}

/// Short and long prompts and answers, greedy and seeded.
std::vector<std::string> all_lines() {
  std::vector<std::string> lines;
  for (unsigned i = 0; i < 12; ++i)
    lines.push_back(fmt::format(
      R"({{"tokens": [{}], "max_tokens": {}, "ignore_end": true, "temperature": {}, "seed": {}}})",
      fmt::join(random_tokens(3 + 13 * i, 2048, i), ", "),
      20 + 17 * (i % 5),
      i % 2 == 0 ? 0.0 : 0.8,
      i));
  return lines;
}

/// What the clients found, together. Any thread.
struct tally {
  std::atomic<std::uint64_t> epoch{0}; ///< The last one that was seen.
  std::atomic<bool> over{false};
  std::atomic<std::size_t> answered{0}, disturbed{0}, spoilt{0}, refused{0}, lost{0}, wrong{0};
  std::mutex mutex;
  std::string complaints;

  void complain(const std::string& what) {
    const std::lock_guard lock(mutex);
    complaints += what + "\n";
  }
};

/// A client that asks for one or two answers at a time, in a process of its own each time.
class walk_client {
public:
  walk_client(const cluster& where,
              const std::vector<told_answer>& expected,
              tally& found,
              unsigned seed)
    : where_(where), expected_(expected), found_(found), random_(seed),
      file_(where.folder() / fmt::format("client-{}.jsonl", seed)), running_([this] {
        while (!found_.over)
          ask();
      }) {}

  ~walk_client() {
    if (running_.joinable())
      running_.join();
  }

  walk_client(const walk_client&) = delete;
  walk_client& operator=(const walk_client&) = delete;

private:
  void ask() {
    std::vector<std::size_t> chosen{random_() % expected_.size()};
    if (random_() % 2 == 0)
      chosen.push_back(random_() % expected_.size());
    static const auto lines = all_lines();
    std::ofstream out{file_};
    for (const auto one : chosen)
      out << lines[one] << '\n';
    out.close();
    const auto begun = test_clock::now();
    const auto epoch = found_.epoch.load();
    const auto ran = where_.run(
      {"generate", "FILE", "--prompts-file", file_.string(), "--json", "--digests", "--quiet"},
      120);
    const auto answers = read_answers(ran.lines);
    const bool soon = test_clock::now() - begun < longest_refusal;
    for (std::size_t i = 0; i < chosen.size(); ++i)
      judge(i < answers.size() ? answers[i] : told_answer{},
            expected_[chosen[i]],
            soon && ran.code > 0,
            found_.epoch != epoch,
            ran);
  }

  void judge(const told_answer& got,
             const told_answer& expected,
             bool may_be_refusal,
             bool disturbed,
             const outcome& ran) {
    const bool begins_alike =
      got.digests.size() <= expected.digests.size()
      && std::equal(got.digests.begin(), got.digests.end(), expected.digests.begin());
    if (!begins_alike) {
      ++found_.wrong;
      found_.complain("other tokens: " + ran.all());
    } else if (got.finish == "length" && got.digests.size() == expected.digests.size()) {
      ++found_.answered;
      found_.disturbed += disturbed ? 1 : 0;
    } else if (got.what.find("not a finite number") != std::string::npos) {
      ++found_.spoilt;
    } else if (got.tokens.empty() && may_be_refusal) {
      ++found_.refused;
      std::this_thread::sleep_for(100ms);
    } else {
      ++found_.lost;
      found_.complain(fmt::format("lost, code {}: {}", ran.code, ran.all()));
    }
  }

  const cluster& where_;
  const std::vector<told_answer>& expected_;
  tally& found_;
  std::mt19937 random_;
  const std::filesystem::path file_;
  std::thread running_; // Last: it uses the members above.
};

/// Who lets things go wrong, and puts them right again as an operator would.
class walker {
public:
  walker(const walk_shape& shape, const cluster& where, tally& found, unsigned seed)
    : shape_(shape), nodes_(where, shape.ranks()), watch_(where), found_(found), random_(seed) {}

  tended_nodes& nodes() { return nodes_; }

  observer& watch() { return watch_; }

  const std::map<std::string, std::size_t>& faults() const { return faults_; }

  std::string words() const {
    std::string all;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      all += fmt::format("-- n{}\n{}", i, nodes_.words(i));
    return all;
  }

  void harm();
  void tend_for(milliseconds time);

  /// Until it serves with nobody's request; false when that does not come.
  bool rests(milliseconds patience);

private:
  std::size_t below(std::size_t count) { return random_() % count; }

  std::size_t somebody() { return 1 + below(nodes_.size() - 1); } // but for the head

  void order(const std::string& what, const std::string& where, const std::string& when);
  void tend();

  const walk_shape& shape_;
  tended_nodes nodes_;
  observer watch_;
  tally& found_;
  std::mt19937 random_;
  std::map<std::string, std::size_t> faults_;
  test_clock::time_point served_ = test_clock::now();
};

void walker::order(const std::string& what, const std::string& where, const std::string& when) {
  fault_settings wanted;
  wanted.what = what;
  wanted.where = where;
  wanted.when = when;
  wanted.steps = what == "slow" || what == "cut" ? 1 + below(10) : 0;
  wanted.factor = 20;
  wanted.ms = 50;
  wanted.seed = random_();
  if (watch_.inject(wanted)) // there may be no head just now
    ++faults_[what];
}

/// One of the things that go wrong.
void walker::harm() {
  static const std::vector<std::string> frames{
    "drop", "duplicate", "delay", "reorder", "truncate", "corrupt", "cut", "fail_transport"};
  static const std::vector<std::string> phases{
    "phase joining", "phase leaving 3", "load 50", "step 3", "message 9"};
  const auto rank = fmt::format("rank {}", somebody());
  switch (below(12)) {
  case 0:
  case 1:
    nodes_.signal(somebody(), SIGKILL);
    ++faults_["kill"];
    break;
  case 2: // two at once, or the same twice
    nodes_.signal(somebody(), SIGKILL);
    nodes_.signal(somebody(), SIGKILL);
    ++faults_["kill of two"];
    break;
  case 3:
    nodes_.signal(0, SIGKILL);
    ++faults_["kill of the head"];
    break;
  case 4:
    nodes_.signal(somebody(), SIGSTOP);
    ++faults_["stop"];
    break;
  case 5: { // shorter than the bound
    const auto who = below(nodes_.size());
    nodes_.signal(who, SIGSTOP);
    std::this_thread::sleep_for(milliseconds{100 + below(500)});
    nodes_.signal(who, SIGCONT);
    ++faults_["pause"];
    break;
  }
  case 6: order("kill", rank, phases[below(phases.size())]); break;
  case 7: order("nan", rank, fmt::format("step {}", 1 + below(20))); break;
  case 8:
    order(
      "refuse_allocation", rank, below(2) == 0 ? "load" : fmt::format("step {}", 1 + below(20)));
    break;
  case 9: order("slow", rank, "step 2"); break;
  default: {
    auto what = frames[below(frames.size())];
    const auto& link = shape_.links[below(shape_.links.size())];
    // A cut stays until its process is started anew, and nobody restarts a head that serves.
    if (what == "cut" && (link.starts_with("rank 0") || link.starts_with("conductor")))
      what = "drop";
    order(what, link, fmt::format("message {}", 1 + below(30)));
  }
  }
}

void walker::tend() {
  nodes_.tend();
  const auto now = watch_.look();
  if (!now)
    return;
  found_.epoch = now->epoch;
  if (now->serves())
    served_ = test_clock::now();
  for (std::size_t i = 1; i < nodes_.size(); ++i) // given up, or unknown to a new head
    if (now->nodes.at(i).state != "joined" && nodes_.stands_still(i))
      nodes_.replace(i);
  if (test_clock::now() - served_ < patience_of_an_operator)
    return;
  for (std::size_t i = 1; i < nodes_.size(); ++i)
    nodes_.signal(i, SIGKILL);
  served_ = test_clock::now();
  ++faults_["restart by hand"];
}

void walker::tend_for(milliseconds time) {
  const auto until = test_clock::now() + time;
  while (test_clock::now() < until) {
    tend();
    std::this_thread::sleep_for(between_looks);
  }
}

bool walker::rests(milliseconds patience) {
  const auto until = test_clock::now() + patience;
  while (test_clock::now() < until) {
    tend();
    const auto now = watch_.look();
    if (now && now->serves() && now->running == 0 && now->pages_used == 0)
      return true;
    std::this_thread::sleep_for(between_looks);
  }
  return false;
}

/// The most that any node holds.
holdings most_held(const tended_nodes& nodes) {
  holdings most;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto one = held_by(nodes.pid(i));
    most.memory_kb = std::max(most.memory_kb, one.memory_kb);
    most.descriptors = std::max(most.descriptors, one.descriptors);
    most.threads = std::max(most.threads, one.threads);
  }
  return most;
}

/// What is there when all is quiet again, against what was there before anything happened.
std::string check_leftovers(const cluster& where, walker& who, const holdings& before) {
  const auto after = most_held(who.nodes());
  BOOST_TEST(after.memory_kb < before.memory_kb + before.memory_kb / 4 + 16 * 1024);
  BOOST_TEST(after.descriptors <= before.descriptors + 8);
  BOOST_TEST(after.threads <= before.threads + 2);
  const auto alive = processes_with(where.file().string());
  BOOST_TEST(alive.size() == who.nodes().size());
  const auto shared = shared_memory_left_by(who.nodes().all_pids());
  BOOST_TEST(shared.empty(), shared);
  const auto files = entries_below(where.folder().path());
  BOOST_TEST(files < 50u);
  return fmt::format(
    "{} processes of {} nodes, no shared memory without an owner, {} files; a node "
    "holds at most {} MB, {} descriptors and {} threads (at the start {} MB, {} and "
    "{})",
    alive.size(),
    who.nodes().size(),
    files,
    after.memory_kb / 1024,
    after.descriptors,
    after.threads,
    before.memory_kb / 1024,
    before.descriptors,
    before.threads);
}

} // namespace

std::size_t walk_result::all_faults() const {
  std::size_t all = 0;
  for (const auto& [name, count] : faults)
    all += count;
  return all;
}

walk_result walk_of_faults(unsigned seed, std::chrono::seconds time) {
  const auto& shape = shape_for(seed);
  const auto expected = cluster{file_for(shape, {})}.generate(all_lines());
  const temporary_folder place;
  const cluster where{file_for(shape, place / "head.journal")};
  tally found;
  walker who{shape, where, found, seed};
  BOOST_REQUIRE_MESSAGE(who.rests(30s), who.words());
  walk_result got;
  got.shape = shape.name;
  {
    std::vector<std::unique_ptr<walk_client>> asking;
    for (std::size_t i = 0; i < clients; ++i)
      asking.push_back(std::make_unique<walk_client>(
        where, expected, found, static_cast<unsigned>(seed * clients + i)));
    who.tend_for(2s);
    const auto before = most_held(who.nodes());
    std::mt19937 pauses{seed};
    const auto until = test_clock::now() + time;
    while (test_clock::now() < until) {
      who.harm();
      who.tend_for(milliseconds{200 + pauses() % 1600});
    }
    found.over = true;
    const bool rests = who.rests(60s);
    const auto last = who.watch().look();
    BOOST_REQUIRE_MESSAGE(rests,
                          found.complaints << (last ? last->text() : std::string{}) << who.words());
    asking.clear();
    BOOST_REQUIRE(who.rests(10s));
    const auto wrong = who.nodes().wake();
    BOOST_TEST(wrong.empty(), wrong << who.words());
    got.leftovers = check_leftovers(where, who, before);
  }
  got.faults = who.faults();
  got.epochs = found.epoch;
  got.processes = who.nodes().all_pids().size();
  got.answered = found.answered;
  got.disturbed = found.disturbed;
  got.spoilt = found.spoilt;
  got.refused = found.refused;
  got.lost = found.lost;
  got.wrong = found.wrong;
  const auto nans = got.faults.contains("nan") ? got.faults.at("nan") : 0;
  BOOST_TEST(got.spoilt <= nans);
  BOOST_TEST(found.complaints.empty(), found.complaints);
  if (got.lost + got.wrong > 0)
    BOOST_TEST_MESSAGE(who.words());
  return got;
}

} // namespace troupe::tests
