#include "tests/support/serving_cluster.hpp"

#include <boost/test/unit_test.hpp>

#include <csignal>
#include <thread>

namespace troupe::tests {

using namespace std::chrono_literals;

namespace {

constexpr auto two_beats = 450ms;

std::vector<std::string> up_command(const std::vector<std::string>& more) {
  std::vector<std::string> words{"up", "FILE"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

} // namespace

serving_cluster::serving_cluster(const cluster& which, const std::vector<std::string>& more)
  : which_(which), up_(which.start(up_command(more))) {
  up_.finish_input();
  const auto until = std::chrono::steady_clock::now() + 30s;
  while (words_.find("serving;") == std::string::npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      until - std::chrono::steady_clock::now());
    const auto line = up_.hear(std::max(left, 1ms));
    BOOST_REQUIRE_MESSAGE(line, "the cluster does not serve: " << words_);
    words_ += *line + "\n";
  }
}

serving_cluster::~serving_cluster() {
  up_.signal(SIGTERM);
  up_.wait(20s);
}

std::uint16_t serving_cluster::http_port() const {
  return port_in(words_);
}

std::uint16_t port_in(const std::string& words) {
  const auto at = words.find("://");
  const auto colon = words.find(':', at + 3);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos && colon != std::string::npos,
                        "no address of HTTP in: " << words);
  return static_cast<std::uint16_t>(std::stoul(words.substr(colon + 1)));
}

bool serving_cluster::becomes(const std::string& name, std::uint64_t wanted) const {
  const auto until = std::chrono::steady_clock::now() + 5s;
  const auto words = "\"" + name + "\":" + std::to_string(wanted);
  while (std::chrono::steady_clock::now() < until) {
    const auto found = which_.run({"status", "FILE", "--json"}, 5).all();
    const auto at = found.find(words);
    if (at != std::string::npos && std::string{",}"}.find(found[at + words.size()]) < 2)
      return true;
    std::this_thread::sleep_for(50ms);
  }
  return false;
}

std::string serving_cluster::status() const {
  std::this_thread::sleep_for(two_beats);
  return which_.run({"status", "FILE", "--json"}, 10).all();
}

std::vector<std::map<std::string, std::uint64_t>> serving_cluster::gauges() const {
  return read_gauges({status()});
}

std::uint64_t number_in(const std::string& json, const std::string& name) {
  const auto words = "\"" + name + "\":";
  const auto at = json.find(words);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, "no " << name << " in " << json);
  return std::stoull(json.substr(at + words.size()));
}

} // namespace troupe::tests
