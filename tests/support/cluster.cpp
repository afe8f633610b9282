#include "tests/support/cluster.hpp"
#include "tests/paths.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <fstream>
#include <random>

namespace troupe::tests {

namespace {

std::string cluster_text(const cluster_shape& shape) {
  auto text = fmt::format("[model]\npath = \"{}\"\n\n[parallel]\npipeline = {}\ntensor = {}\n\n",
                          shape.model.string(),
                          shape.pipeline,
                          shape.tensor);
  if (shape.network)
    text += "[security]\nsecret_file = \"secret\"\n\n";
  text += shape.more + "\n";
  auto left = shape.pipeline * shape.tensor;
  for (std::size_t n = 0; left > 0; ++n) {
    const auto ranks = std::min(left, shape.ranks_per_node);
    text += fmt::format(
      "[[node]]\nname = \"n{}\"\nranks = {}\nthreads = 1\n{}\n", n, ranks, shape.node_more);
    if (shape.network)
      text += fmt::format("bind = \"{}\"\n{}", lan::address(n + 1), n == 0 ? "port = 7000\n" : "");
    left -= ranks;
  }
  return text;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream out{path};
  out << text;
  BOOST_REQUIRE(out.good());
}

} // namespace

std::filesystem::path troupe_program() {
  return std::filesystem::path{TROUPE_BINARY_DIR} / "troupe";
}

served_model::served_model(compute::random_model wanted, std::size_t vocabulary) {
  wanted.vocabulary = vocabulary;
  const auto written =
    compute::write_random_model(folder(), wanted, 1, [](std::size_t, std::size_t) {});
  BOOST_REQUIRE_MESSAGE(written, (written ? std::string{} : written.error().what));
  const auto demo = std::filesystem::path{TROUPE_SOURCE_DIR} / "config" / "demo";
  for (const auto* name : {"tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy_file(demo / name, folder() / name);
}

const served_model& short_model() {
  static const served_model model{[] {
    compute::random_model wanted;
    wanted.layers = 4;
    wanted.context = 256;
    return wanted;
  }()};
  return model;
}

const served_model& shape_110m() {
  static const served_model model{[] {
    compute::random_model wanted;
    compute::apply_named_shape("110M", wanted);
    wanted.stored = dtype::bf16;
    return wanted;
  }()};
  return model;
}

cluster::cluster(const cluster_shape& shape) : cluster(cluster_text(shape)) {
  network_ = shape.network;
  if (network_) {
    const auto secret = folder_ / "secret";
    write_file(secret, "what the hosts of this test share: 51c07e2b\n");
    std::filesystem::permissions(secret, std::filesystem::perms::owner_read);
  }
}

cluster::cluster(const std::string& text) : file_(folder_ / "cluster.toml") {
  write_file(file_, text);
}

test::process cluster::start(std::vector<std::string> arguments) const {
  for (auto& argument : arguments)
    if (argument == "FILE")
      argument = file_.string();
  arguments.insert(arguments.begin(), troupe_program().string());
  return test::process::run(arguments, {"XDG_RUNTIME_DIR=" + folder_.path().string()}, true);
}

test::process cluster::start_node(const std::string& name, const std::filesystem::path& log) const {
  const auto script = fmt::format("exec \"$@\" >>'{}' 2>&1", log.string());
  std::vector<std::string> command{
    "/bin/sh", "-c", script, "sh", troupe_program(), "node", file_, "--name", name};
  if (network_)
    command = network_->inside(std::stoul(name.substr(1)) + 1, std::move(command));
  return test::process::run(command, {"XDG_RUNTIME_DIR=" + folder_.path().string()});
}

outcome cluster::run(std::vector<std::string> arguments, int seconds) const {
  return outcome_of(start(std::move(arguments)), seconds);
}

outcome cluster::try_generate(const std::vector<std::string>& prompt_lines,
                              const std::vector<std::string>& more,
                              int seconds) const {
  const auto prompts = folder_ / "prompts.jsonl";
  write_file(prompts, fmt::format("{}\n", fmt::join(prompt_lines, "\n")));
  std::vector<std::string> arguments{
    "generate", "FILE", "--prompts-file", prompts.string(), "--json", "--digests", "--quiet"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run(std::move(arguments), seconds);
}

std::vector<told_answer> cluster::generate(const std::vector<std::string>& prompt_lines,
                                           const std::vector<std::string>& more) const {
  const auto ran = try_generate(prompt_lines, more);
  BOOST_REQUIRE_MESSAGE(ran.code == 0, "exit code " << ran.code << "\n" << ran.all());
  auto answers = read_answers(ran.lines);
  BOOST_REQUIRE_MESSAGE(answers.size() == prompt_lines.size(), ran.all());
  return answers;
}

std::vector<told_answer> read_answers(const std::vector<std::string>& lines) {
  std::vector<told_answer> answers;
  for (const auto& line : lines) {
    if (line.empty() || line.front() != '{')
      continue;
    const auto object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object() || !object.contains("index"))
      continue;
    const auto index = object["index"].get<std::size_t>();
    answers.resize(std::max(answers.size(), index + 1));
    auto& one = answers[index];
    one.text = object.value("text", "");
    one.tokens = object.value("tokens", std::vector<token_id>{});
    one.logprobs = object.value("logprobs", std::vector<double>{});
    one.digests = object.value("digests", std::vector<std::string>{});
    one.finish = object.value("finish", "");
    one.what = object.value("error", "");
  }
  return answers;
}

std::vector<std::map<std::string, std::uint64_t>>
read_gauges(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines)
    text += line + "\n";
  std::vector<std::map<std::string, std::uint64_t>> found;
  const auto status = nlohmann::json::parse(text, nullptr, false);
  if (!status.is_object())
    return found;
  for (const auto& rank : status["ranks"]) {
    auto& one = found.emplace_back();
    for (const auto& [key, value] : rank.items())
      if (value.is_number_unsigned())
        one[key] = value.get<std::uint64_t>();
  }
  return found;
}

std::string token_prompt(const std::vector<token_id>& tokens, std::size_t new_tokens) {
  return fmt::format(R"({{"tokens": [{}], "max_tokens": {}, "ignore_end": true}})",
                     fmt::join(tokens, ", "),
                     new_tokens);
}

std::vector<token_id> random_tokens(std::size_t count, std::size_t vocabulary, unsigned seed) {
  std::mt19937 random{seed};
  std::vector<token_id> tokens;
  for (std::size_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<token_id>(random() % vocabulary));
  return tokens;
}

} // namespace troupe::tests
