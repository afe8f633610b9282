// bench_grammar: what answers by a JSON schema cost, with a vocabulary of 131072 tokens. One JSON
// line a measure, in milliseconds of the thread, and beside each the time of one pass of the
// sampler over as many logits, which every token takes anyway.
//
//   bench_grammar [answers]

#include "compute/grammar/constraint.hpp"
#include "compute/grammar/json_schema.hpp"
#include "compute/sampler.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <random>

using namespace troupe;
using namespace troupe::compute;

namespace {

constexpr std::size_t vocabulary = 131072;
constexpr token_id end = vocabulary - 1;

const char* const schema = R"({"type": "object", "properties": {
  "place": {"type": "string"}, "days": {"type": "integer"}, "note": {"type": "string"},
  "units": {"enum": ["celsius", "fahrenheit", null]},
  "spots": {"type": "array", "maxItems": 4, "items": {"type": "object", "properties": {
    "name": {"type": "string", "maxLength": 40}, "x": {"type": "number"}}, "required": ["x"]}}},
  "required": ["place", "units"], "additionalProperties": false})";

double thread_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

/// All bytes, and words that start as those of a real vocabulary do: many share their beginning.
std::vector<std::string> made_up_tokens() {
  std::mt19937 random(1);
  std::vector<std::string> made(vocabulary);
  const std::string letters = "etaoinshrdlucmfwypvbgkjqxz", signs = "{}[]\":,.-_0123456789\\/()";
  for (std::size_t id = 0; id < 256; ++id)
    made[id] = static_cast<char>(id);
  for (std::size_t id = 256; id < end; ++id) {
    auto& text = made[id];
    if (random() % 10 == 0) {
      for (auto left = random() % 3 + 2; left > 0; --left)
        text += signs[random() % signs.size()];
      continue;
    }
    text = random() % 2 == 0 ? " " : "";
    for (auto left = random() % 9 + 2; left > 0; --left)
      text += letters[std::min(random() % 26, random() % 26)];
  }
  return made;
}

void print(const char* what, std::vector<double> ms, double sampler_ms) {
  std::sort(ms.begin(), ms.end());
  fmt::print("{{\"what\": \"{}\", \"count\": {}, \"median_ms\": {:.4f}, \"worst_ms\": {:.3f}, "
             "\"median_of_sampler\": {:.3f}}}\n",
             what,
             ms.size(),
             ms[ms.size() / 2],
             ms.back(),
             ms[ms.size() / 2] / sampler_ms);
}

} // namespace

int main(int count, char** arguments) {
  const int answers = count > 1 ? std::atoi(arguments[1]) : 20;
  auto begin = thread_ms();
  auto words = std::make_shared<const token_trie>(made_up_tokens());
  const double trie_ms = thread_ms() - begin;
  std::mt19937_64 random(2);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> noise(vocabulary);
  for (auto& one : noise)
    one = normal(random);
  std::vector<double> compile, fresh, known, plain, masked;
  sampling wish;
  wish.temperature = 1;
  for (int round = 0; round < answers; ++round) {
    begin = thread_ms();
    auto rules = compile_schema(schema);
    compile.push_back(thread_ms() - begin);
    if (!rules)
      return 1;
    constraint follows(*rules, words, {end});
    wish.seed = static_cast<std::uint64_t>(round);
    for (std::uint64_t at = 0; at < 300; ++at) {
      begin = thread_ms();
      auto allowed = follows.allowed();
      fresh.push_back(thread_ms() - begin);
      if (!allowed)
        return 1;
      begin = thread_ms();
      allowed = follows.allowed();
      known.push_back(thread_ms() - begin);
      std::rotate(noise.begin(), noise.begin() + 977, noise.end());
      auto logits = noise;
      begin = thread_ms();
      auto free = sample(logits, wish, {}, at);
      plain.push_back(thread_ms() - begin);
      logits = noise;
      sampling_rules asked;
      asked.allowed = *allowed;
      begin = thread_ms();
      auto chosen = sample(logits, wish, {}, at, asked);
      masked.push_back(thread_ms() - begin);
      if (!free || !chosen || !follows.accept(chosen->token) || chosen->token == end)
        break;
    }
  }
  auto sorted = plain;
  std::sort(sorted.begin(), sorted.end());
  const double sampler_ms = sorted[sorted.size() / 2];
  print("tree of the vocabulary, once a process", {trie_ms}, sampler_ms);
  print("schema to grammar, once a request", compile, sampler_ms);
  print("mask, all tokens of all answers", fresh, sampler_ms);
  print("mask of a state that is known", known, sampler_ms);
  print("sampler without a mask", plain, sampler_ms);
  print("sampler with a mask", masked, sampler_ms);
  return 0;
}
