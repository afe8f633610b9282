#include "tests/support/observer.hpp"

#include "actors/cli/generate_lines.hpp"
#include "actors/cli/status_text.hpp"
#include "actors/control/client.hpp"
#include "actors/control/run_folder.hpp"
#include "actors/messages/clients.hpp"
#include "config/cluster_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace troupe::tests {

using namespace std::chrono_literals;

namespace {

constexpr auto patience = 5000ms;
constexpr auto between_looks = 3ms;

sight seen(const actors::cluster_status& told) {
  sight made;
  made.when = test_clock::now();
  made.phase = told.phase;
  made.reason = told.reason;
  made.epoch = number(told.epoch);
  for (const auto& node : told.nodes)
    made.nodes.push_back({node.name, node.state, node.reason});
  for (const auto& rank : told.ranks)
    made.ranks.push_back({rank.node,
                          rank.gauge.rows,
                          rank.gauge.rows_replayed,
                          rank.gauge.compute_ns,
                          std::string{cli::phase_name(rank.gauge.phase)},
                          number(rank.gauge.step),
                          rank.gauge.in_collective != 0,
                          rank.gauge.progress});
  made.queued = told.conductor.queued;
  made.running = told.conductor.running;
  made.in_flight = told.conductor.steps_in_flight;
  made.pages_used = told.conductor.pages_used;
  return made;
}

told_answer told_as_text(actors::text_answer& answer) {
  told_answer made;
  made.text = std::move(answer.text);
  made.tokens = std::move(answer.tokens);
  for (const auto digest : answer.digests)
    made.digests.push_back(fmt::format("{:016x}", digest));
  made.finish = answer.finish;
  made.what = answer.what;
  return made;
}

} // namespace

bool sight::lost(const std::string& name) const {
  return std::any_of(nodes.begin(), nodes.end(), [&](const auto& one) {
    return one.name == name && one.state == "lost";
  });
}

std::string sight::text() const {
  auto told = fmt::format("epoch {} {} ({}); {} queued, {} running, {} steps in flight, {} pages\n",
                          epoch,
                          phase,
                          reason,
                          queued,
                          running,
                          in_flight,
                          pages_used);
  for (const auto& one : nodes)
    told += fmt::format("node {} {} {}\n", one.name, one.state, one.reason);
  for (const auto& one : ranks)
    told += fmt::format("rank on {} {} at step {}{}, progress {}\n",
                        one.node,
                        one.phase,
                        one.step,
                        one.in_collective ? ", waits for its group" : "",
                        one.progress);
  return told;
}

observer::observer(const cluster& where) : where_(where) {
  auto settings = read_cluster_file(where.file());
  BOOST_REQUIRE_MESSAGE(settings, (settings ? std::string{} : settings.error().what));
  settings_ = std::move(*settings);
}

observer::~observer() = default;

bool observer::connect() {
  ::setenv("XDG_RUNTIME_DIR", where_.folder().path().c_str(), 1); // as the cluster's processes
  auto found =
    actors::cluster_client::connect(settings_, actors::run_folder_for(settings_), patience);
  if (found)
    client_ = std::move(*found);
  return found.has_value();
}

std::optional<sight> observer::look() {
  if (!client_ && !connect())
    return std::nullopt;
  auto told = client_->status(patience);
  if (told)
    return seen(*told);
  client_.reset(); // the next head is another one
  return std::nullopt;
}

std::optional<sight> observer::look_until(const std::function<bool(const sight&)>& wanted,
                                          std::chrono::milliseconds patience) {
  const auto until = test_clock::now() + patience;
  do {
    if (auto now = look(); now && wanted(*now))
      return now;
    std::this_thread::sleep_for(between_looks);
  } while (test_clock::now() < until);
  return std::nullopt;
}

result<std::string> observer::inject(const fault_settings& wanted) {
  if (!client_ && !connect())
    return error{errc::unreachable, "there is no head"};
  return client_->inject(wanted, patience);
}

std::vector<told_answer> observer::generate(const std::vector<std::string>& lines,
                                            const std::function<void()>& heard) {
  if (!client_ && !connect())
    return {};
  actors::text_request defaults;
  defaults.with_digests = true;
  auto requests =
    cli::read_prompt_lines(fmt::format("{}\n", fmt::join(lines, "\n")), "the test", defaults);
  if (!requests)
    return {};
  const std::atomic<bool> cancel{false};
  auto answers = client_->generate(
    *requests, [&](std::size_t, const std::string&) { heard(); }, cancel);
  std::vector<told_answer> made;
  if (answers)
    for (auto& one : *answers)
      made.push_back(told_as_text(one));
  return made;
}

live_requests::live_requests(const cluster& where, const std::vector<std::string>& lines)
  : running_([this, &where, lines] {
      observer client{where};
      answers_ = client.generate(lines, [this] {
        const std::lock_guard lock(mutex_);
        heard_.push_back(test_clock::now());
      });
      done_ = true;
    }) {}

live_requests::~live_requests() {
  if (running_.joinable())
    running_.join();
}

std::size_t live_requests::pieces() const {
  const std::lock_guard lock(mutex_);
  return heard_.size();
}

std::optional<test_clock::time_point>
live_requests::first_after(test_clock::time_point moment) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::upper_bound(heard_.begin(), heard_.end(), moment);
  return found == heard_.end() ? std::nullopt : std::optional{*found};
}

const std::vector<told_answer>& live_requests::answers() {
  if (running_.joinable())
    running_.join();
  return answers_;
}

} // namespace troupe::tests
