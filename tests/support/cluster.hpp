#pragma once
// Real clusters for tests: a cluster file in a folder of its own, and the program itself on it, in
// processes that the test can kill.

#include "compute/architectures/random_model.hpp"
#include "config/ids.hpp"
#include "tests/support/lan.hpp"
#include "tests/support/outcome.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::tests {

/// The built program.
std::filesystem::path troupe_program();

/// A model folder with random weights and the demo's tokenizer (vocabulary 2048). A model with more
/// rows than that is served where the cluster file allows for padding.
class served_model {
public:
  explicit served_model(compute::random_model wanted, std::size_t vocabulary = 2048);

  const std::filesystem::path& folder() const { return folder_.path(); }

private:
  temporary_folder folder_;
};

/// Four small layers and a context of 256: a token is a moment.
const served_model& short_model();

/// Hidden 768, 12 layers, 12 heads, 4 KV heads, ffn 2048, in bf16: 0.17 GB of weights, more than
/// any second-level cache.
const served_model& shape_110m();

/// One object of `troupe generate --json`.
struct told_answer {
  std::string text;
  std::vector<token_id> tokens;
  std::vector<double> logprobs;
  std::vector<std::string> digests;
  std::string finish;
  std::string what;
};

struct cluster_shape {
  std::filesystem::path model;
  std::size_t pipeline = 1;
  std::size_t tensor = 1;
  std::size_t ranks_per_node = 1; ///< Nodes are processes; the last one takes what is left.
  std::string more;               ///< TOML that follows, for example "[schedule]\n...".
  std::string node_more;          ///< TOML for each node, for example "transports = \"tcp,self\"".
  std::shared_ptr<const lan> network; ///< Node n<i> is on its host i + 1; null: all are on ours.
};

class cluster {
public:
  explicit cluster(const cluster_shape& shape);
  /// A cluster file with exactly this text.
  explicit cluster(const std::string& text);

  const std::filesystem::path& file() const { return file_; }

  const temporary_folder& folder() const { return folder_; }

  /// `troupe <arguments>`; "FILE" stands for the cluster file. Standard error with standard output.
  outcome run(std::vector<std::string> arguments, int seconds = 60) const;

  /// Starts it and returns at once.
  test::process start(std::vector<std::string> arguments) const;

  /// Starts a node, on its host, whose words go to the end of a file: nobody has to listen.
  test::process start_node(const std::string& name, const std::filesystem::path& log) const;

  /// `troupe generate FILE --json --digests` on a cluster of its own with these lines of prompts
  /// (troupe's own format); ends the test when it fails.
  std::vector<told_answer> generate(const std::vector<std::string>& prompt_lines,
                                    const std::vector<std::string>& more = {}) const;

  /// As generate, with exit code and messages.
  outcome try_generate(const std::vector<std::string>& prompt_lines,
                       const std::vector<std::string>& more = {},
                       int seconds = 60) const;

private:
  temporary_folder folder_;
  std::filesystem::path file_;
  std::shared_ptr<const lan> network_;
};

/// The answers among lines of `troupe generate --json`, by index.
std::vector<told_answer> read_answers(const std::vector<std::string>& lines);

/// The counters of each rank in `troupe status --json`, by name.
std::vector<std::map<std::string, std::uint64_t>>
read_gauges(const std::vector<std::string>& lines);

/// A line for --prompts-file: a prompt of ids, greedy, to exactly `new_tokens` tokens.
std::string token_prompt(const std::vector<token_id>& tokens, std::size_t new_tokens);

/// `count` ids below `vocabulary`, by seed.
std::vector<token_id> random_tokens(std::size_t count, std::size_t vocabulary, unsigned seed);

} // namespace troupe::tests
