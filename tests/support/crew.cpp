#include "tests/support/crew.hpp"

#include <boost/test/unit_test.hpp>

#include <csignal>

namespace troupe::tests {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

bool status_becomes(const cluster& where, const std::string& words, milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  do {
    if (where.run({"status", "FILE", "--json"}, 5).mentions(words))
      return true;
    std::this_thread::sleep_for(20ms);
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

pid_t process_of(const cluster& where, const std::string& node) {
  const auto all = where.run({"status", "FILE", "--json"}, 10).all();
  const auto begin = all.find("\"name\":\"" + node + "\"");
  if (begin == std::string::npos)
    return 0;
  const std::string word = ", process ";
  const auto at = all.find(word, begin);
  return at < all.find('}', begin) ? static_cast<pid_t>(std::stol(all.substr(at + word.size())))
                                   : 0;
}

crew::crew(const cluster& where, std::size_t nodes) : where_(where) {
  for (std::size_t i = 0; i < nodes; ++i)
    start(i);
  BOOST_REQUIRE(status_becomes(where_, serving, 30s));
}

void crew::kill(std::size_t index) {
  node(index).signal(SIGKILL);
  node(index).wait(5s);
}

void crew::start(std::size_t index) {
  nodes_.erase(index);
  nodes_.emplace(index, where_.start({"node", "FILE", "--name", "n" + std::to_string(index)}));
}

std::vector<std::map<std::string, std::uint64_t>> crew::gauges() const {
  return read_gauges(where_.run({"status", "FILE", "--json"}, 10).lines);
}

namespace {

std::uint64_t epoch_in(const outcome& told) {
  const auto all = told.all();
  const std::string name = "\"epoch\":"; // the cluster's comes first
  const auto at = all.find(name);
  return at == std::string::npos ? 0 : std::stoull(all.substr(at + name.size()));
}

} // namespace

std::uint64_t crew::epoch() const {
  return epoch_in(where_.run({"status", "FILE", "--json"}, 10));
}

bool crew::serves_with(std::size_t ranks, milliseconds patience, std::uint64_t last) const {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until) {
    const auto told = where_.run({"status", "FILE", "--json"}, 5);
    if (told.mentions(serving) && read_gauges(told.lines).size() == ranks && epoch_in(told) > last)
      return true;
    std::this_thread::sleep_for(20ms);
  }
  return false;
}

background_requests::background_requests(const cluster& where,
                                         const std::vector<std::string>& lines,
                                         often how)
  : enough_(how == often::once), running_([this, &where, lines] {
      do {
        const auto ran = where.try_generate(lines, {}, 120);
        found_.push_back(read_answers(ran.lines));
        words_ = ran.code == 0 ? "" : ran.all();
      } while (!enough_ && words_.empty());
    }) {}

background_requests::~background_requests() {
  enough_ = true;
  if (running_.joinable())
    running_.join();
}

namespace {

std::string first_difference(const told_answer& found, const told_answer& expected) {
  std::size_t at = 0;
  while (at < found.digests.size() && at < expected.digests.size()
         && found.digests[at] == expected.digests[at])
    ++at;
  return std::to_string(found.digests.size()) + " tokens of "
         + std::to_string(expected.digests.size()) + ", the first " + std::to_string(at)
         + " are equal; " + found.what;
}

} // namespace

void background_requests::compare(const std::vector<told_answer>& expected) {
  enough_ = true;
  running_.join();
  for (const auto& round : found_) {
    BOOST_REQUIRE_MESSAGE(round.size() == expected.size(), words_);
    for (std::size_t i = 0; i < round.size(); ++i) {
      BOOST_TEST(round[i].finish == "length", round[i].what);
      BOOST_TEST((round[i].digests == expected[i].digests),
                 first_difference(round[i], expected[i]));
      BOOST_TEST((round[i].text == expected[i].text));
    }
  }
}

std::vector<std::string> some_requests(std::size_t count, std::size_t tokens) {
  std::vector<std::string> lines;
  for (unsigned i = 0; i < count; ++i)
    lines.push_back(token_prompt(random_tokens(5 + 30 * i, 2048, i), tokens));
  return lines;
}

} // namespace troupe::tests
