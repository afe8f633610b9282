#include "tests/support/cluster_commands.hpp"

namespace troupe::tests {

using namespace std::chrono_literals;

const served_model& small_model() {
  static const served_model model{[] {
    compute::random_model wanted;
    wanted.layers = 4;
    return wanted;
  }()};
  return model;
}

cluster_shape
in_one_process(const std::filesystem::path& model, std::size_t pipeline, std::size_t tensor) {
  cluster_shape shape;
  shape.model = model;
  shape.pipeline = pipeline;
  shape.tensor = tensor;
  shape.ranks_per_node = pipeline * tensor;
  return shape;
}

std::vector<std::string> set(const std::vector<std::string>& options) {
  std::vector<std::string> words;
  for (const auto& option : options)
    words.insert(words.end(), {"--set", option});
  return words;
}

std::vector<std::string> with(std::vector<std::string> head, const std::vector<std::string>& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

test::process
start_node(const cluster& where, const std::string& name, const std::vector<std::string>& options) {
  auto child = where.start(with({"node", "FILE", "--name", name}, set(options)));
  child.finish_input();
  return child;
}

bool hears(test::process& child, const std::string& words, std::chrono::seconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until) {
    const auto line = child.hear(1000ms);
    if (line && line->find(words) != std::string::npos)
      return true;
  }
  return false;
}

} // namespace troupe::tests
