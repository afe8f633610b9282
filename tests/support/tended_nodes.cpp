#include "tests/support/tended_nodes.hpp"

#include <fmt/format.h>

#include <csignal>
#include <fstream>
#include <iterator>

namespace troupe::tests {

using namespace std::chrono_literals;

tended_nodes::tended_nodes(const cluster& where, std::size_t count) : where_(where) {
  for (std::size_t i = 0; i < count; ++i)
    nodes_.push_back(born(i));
}

test::process tended_nodes::born(std::size_t index) {
  auto made = where_.start_node("n" + std::to_string(index), log_of(index));
  all_.insert(made.pid());
  return made;
}

tended_nodes::~tended_nodes() {
  for (auto& one : aside_)
    one.signal(SIGKILL);
  for (auto& one : nodes_)
    one.signal(SIGTERM);
  for (auto& one : nodes_)
    one.wait(10s);
}

std::filesystem::path tended_nodes::log_of(std::size_t index) const {
  return where_.folder() / ("n" + std::to_string(index) + ".log");
}

void tended_nodes::start(std::size_t index) {
  nodes_.at(index) = born(index);
}

std::size_t tended_nodes::tend() {
  std::size_t started = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].wait(0ms)) {
      start(i);
      ++started;
    }
  return started;
}

bool tended_nodes::stands_still(std::size_t index) const {
  std::ifstream in{fmt::format("/proc/{}/stat", pid(index))};
  std::string words;
  std::getline(in, words);
  const auto behind_name = words.rfind(')');
  return behind_name != std::string::npos && words.substr(behind_name, 3) == ") T";
}

void tended_nodes::replace(std::size_t index) {
  aside_.push_back(std::move(nodes_.at(index)));
  start(index);
}

std::string tended_nodes::wake() {
  std::string wrong;
  for (auto& one : aside_) {
    const auto process = one.pid();
    one.signal(SIGCONT);
    const auto end = one.wait(10s);
    if (!end)
      wrong += fmt::format("process {} did not end; ", process);
    else if (end->exited ? end->code == 0 : end->signal != SIGABRT)
      wrong +=
        fmt::format("process {} ended with code {}, signal {}; ", process, end->code, end->signal);
  }
  aside_.clear();
  return wrong;
}

std::string tended_nodes::words(std::size_t index) const {
  std::ifstream in{log_of(index)};
  return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace troupe::tests
