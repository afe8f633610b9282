#include "actors/cli/bench/cluster_way.hpp"

#include "actors/cli/bench/bench_model.hpp"
#include "actors/node/demo_model.hpp"
#include "compute/tokenizer/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::cli {

namespace fs = std::filesystem;

namespace {

std::string quoted(const std::string& text) {
  std::string made = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      made += '\\';
    made += c;
  }
  return made + "\"";
}

bool has_tokenizer(const fs::path& folder) {
  return fs::exists(folder / "tokenizer.json") || fs::exists(folder / "tokenizer.model");
}

/// The folder of the demo's tokenizer, for a model with so many rows in its vocabulary.
result<fs::path> borrow_tokenizer(std::size_t vocabulary) {
  const auto demo = actors::demo_model_folder();
  if (!demo)
    return demo.error();
  const auto words = compute::tokenizer::open(*demo);
  if (!words)
    return words.error();
  if ((*words)->vocabulary_size() > vocabulary)
    return error{errc::mismatch,
                 fmt::format("the model has no tokenizer and a vocabulary of {}; the demo's "
                             "tokenizer, which it could borrow, has {} ids",
                             vocabulary,
                             (*words)->vocabulary_size())};
  return *demo;
}

} // namespace

std::vector<cluster_way> cluster_ways(std::size_t threads, const compute::model& model) {
  std::vector<cluster_way> all{{"1 process x 1 thread"}};
  if (threads < 2)
    return all;
  all.push_back({fmt::format("1 process x {} threads", threads), 1, 1, threads});
  if (model.shape().layers >= 2)
    all.push_back({"PP 2 x 1 thread", 2, 1, 1});
  if (model.max_tensor_size() >= 2)
    all.push_back({"TP 2 x 1 thread", 1, 2, 1});
  return all;
}

result<clustered_model> clustered_model::open(const bench_options& options,
                                              const fs::path& folder) {
  auto model = compute::model::open(folder);
  if (!model)
    return model.error();
  const auto& shape = (*model)->shape();
  const auto held = held_type(options, shape.stored);
  if (!held)
    return held.error();
  fs::path tokenizer;
  if (!has_tokenizer(folder)) {
    auto borrowed = borrow_tokenizer(shape.vocabulary);
    if (!borrowed)
      return borrowed.error();
    tokenizer = *borrowed;
  }
  return clustered_model{options, fs::canonical(folder), tokenizer, std::move(*model), *held};
}

std::string clustered_model::file_of(const cluster_way& one) const {
  const auto context = std::min(options.prompt + options.steps + 1, model->shape().context);
  auto text = fmt::format("[cluster]\nname = \"bench\"\n\n[model]\npath = {}\ndtype = \"{}\"\n"
                          "context = {}\nallow_vocabulary_padding = true\n",
                          quoted(folder.string()),
                          to_string(held),
                          context);
  if (!tokenizer.empty())
    text += fmt::format("tokenizer = {}\n", quoted(tokenizer.string()));
  text += fmt::format("\n[parallel]\npipeline = {}\ntensor = {}\n\n[state]\nmax_sequences = {}\n",
                      one.pipeline,
                      one.tensor,
                      bench_streams);
  for (std::size_t node = 0; node < one.nodes(); ++node)
    text += fmt::format("\n[[node]]\nname = \"n{}\"\nthreads = {}\n", node, one.threads);
  return text;
}

} // namespace troupe::cli
