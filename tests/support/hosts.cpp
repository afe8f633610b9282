#include "tests/support/hosts.hpp"

#include "tests/support/tiny_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <map>
#include <thread>

namespace troupe::tests {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

namespace {

std::string cluster_text(const lab_shape& shape) {
  auto text =
    fmt::format("[cluster]\nname = \"lab\"\nhead = \"h1\"\n\n[model]\npath = \"model\"\n\n"
                "[parallel]\npipeline = {}\ntensor = {}\n\n",
                shape.pipeline,
                shape.tensor);
  if (shape.secured)
    text += "[security]\nsecret_file = \"cluster.secret\"\n\n";
  text += shape.more + "\n";
  for (std::size_t n = 1; n <= shape.ranks.size(); ++n) {
    const auto own = shape.by_name ? lan::name(n) : lan::address(n);
    const auto place = n == shape.everywhere
                         ? fmt::format("bind = \"0.0.0.0\"\nadvertise = \"{}\"", own)
                         : fmt::format("bind = \"{}\"", own);
    text += fmt::format("[[node]]\nname = \"h{}\"\n{}\nranks = {}\nthreads = 1\n{}{}\n\n",
                        n,
                        place,
                        shape.ranks[n - 1],
                        n == 1 ? "port = 7000\n" : "",
                        shape.node_more);
  }
  return text;
}

} // namespace

host_lab::host_lab(const lab_shape& shape)
  : nodes_(shape.ranks.size()), network_(shape.ranks.size() + 1) {
  for (std::size_t host = 1; host <= nodes_ + 1; ++host) {
    folders_.push_back(std::make_unique<temporary_folder>());
    write_text(folder(host) / "cluster.toml", cluster_text(shape));
    set_secret(host, "a secret that these hosts share: 7d1f3c0a\n");
    if (host <= nodes_)
      std::filesystem::copy(shape.model, model(host));
  }
}

void host_lab::set_secret(std::size_t host, const std::string& secret) const {
  const auto file = folder(host) / "cluster.secret";
  write_text(file, secret);
  using std::filesystem::perms;
  std::filesystem::permissions(file, perms::owner_read | perms::owner_write);
}

std::vector<std::string> host_lab::environment(std::size_t host) const {
  return {"XDG_RUNTIME_DIR=" + folder(host).string()};
}

std::vector<std::string> host_lab::troupe(std::size_t host,
                                          const std::vector<std::string>& arguments) const {
  std::vector<std::string> command{troupe_program().string()};
  for (const auto& argument : arguments)
    command.push_back(argument == "FILE" ? (folder(host) / "cluster.toml").string() : argument);
  return command;
}

test::process host_lab::start_node(std::size_t host, const std::vector<std::string>& more) const {
  std::vector<std::string> arguments{"node", "FILE", "--name", fmt::format("h{}", host)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return start(host, arguments);
}

test::process host_lab::start(std::size_t host, const std::vector<std::string>& arguments) const {
  return network_.start(host, troupe(host, arguments), environment(host));
}

outcome
host_lab::run(std::size_t host, const std::vector<std::string>& arguments, int seconds) const {
  return network_.run(host, troupe(host, arguments), environment(host), seconds);
}

std::vector<test::process> host_lab::start_all() const {
  std::vector<test::process> nodes;
  for (std::size_t host = nodes_; host > 0; --host) // the head last: any order must do
    nodes.push_back(start_node(host));
  const bool serving = status_becomes("\"phase\":\"serving\"", 20s);
  BOOST_REQUIRE_MESSAGE(serving, run(1, {"status", "FILE"}).all());
  return nodes;
}

bool host_lab::status_becomes(const std::string& words, std::chrono::seconds patience) const {
  const auto until = clock::now() + patience;
  while (clock::now() < until) {
    if (run(1, {"status", "FILE", "--json"}, 5).mentions(words))
      return true;
    std::this_thread::sleep_for(50ms);
  }
  return false;
}

std::vector<seen_rank> host_lab::ranks() const {
  std::vector<seen_rank> found;
  const auto told = run(1, {"status", "FILE", "--json"});
  const auto status = nlohmann::json::parse(told.all(), nullptr, false);
  BOOST_REQUIRE_MESSAGE(status.is_object(), told.all());
  for (const auto& rank : status["ranks"])
    found.push_back({rank["node"],
                     rank["links"],
                     rank["layers"][0],
                     rank["layers"][1],
                     rank["weight_bytes"],
                     rank["payload_bytes_sent"]});
  return found;
}

std::vector<told_answer> host_lab::generate(std::size_t host,
                                            const std::vector<std::string>& prompt_lines) const {
  const auto prompts = folder(host) / "prompts.jsonl";
  write_text(prompts, fmt::format("{}\n", fmt::join(prompt_lines, "\n")));
  const auto ran =
    run(host,
        {"generate", "FILE", "--prompts-file", prompts.string(), "--json", "--digests", "--quiet"});
  BOOST_REQUIRE_MESSAGE(ran.code == 0, "exit code " << ran.code << "\n" << ran.all());
  auto answers = read_answers(ran.lines);
  BOOST_REQUIRE_MESSAGE(answers.size() == prompt_lines.size(), ran.all());
  return answers;
}

std::size_t host_lab::keep_files(std::size_t host,
                                 const std::function<bool(const std::string&)>& wanted) {
  const auto index = nlohmann::json::parse(read_text(model(host) / "model.safetensors.index.json"));
  std::map<std::string, bool> needed;
  for (const auto& [tensor, file] : index["weight_map"].items())
    needed[file.get<std::string>()] |= wanted(tensor);
  std::size_t removed = 0;
  for (const auto& [file, keep] : needed)
    if (!keep)
      removed += std::filesystem::remove(model(host) / file) ? 1 : 0;
  return removed;
}

} // namespace troupe::tests
