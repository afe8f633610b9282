#include "actors/cli/generate.hpp"

#include "actors/cli/cancel_on_signal.hpp"
#include "actors/cli/forecast.hpp"
#include "actors/cli/generate_lines.hpp"
#include "actors/cli/local_cluster.hpp"
#include "actors/cli/status_text.hpp"
#include "actors/control/run_folder.hpp"

#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <thread>
#include <unistd.h>

namespace troupe::cli {

using actors::cluster_client;
using actors::text_answer;
using actors::text_request;
using std::chrono::milliseconds;

namespace {

using clock = std::chrono::steady_clock;

std::string read_all(std::istream& in) {
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

result<std::vector<compute::logit_bias>> read_biases(const std::vector<std::string>& given) {
  std::vector<compute::logit_bias> made;
  for (const auto& one : given) {
    compute::logit_bias bias;
    const char* end = one.data() + one.size();
    const auto id = std::from_chars(one.data(), end, bias.token);
    const bool has_sign = id.ec == std::errc() && id.ptr != end && *id.ptr == '=';
    const auto number = std::from_chars(has_sign ? id.ptr + 1 : end, end, bias.bias);
    if (!has_sign || number.ec != std::errc() || number.ptr != end)
      return error{errc::invalid_argument,
                   fmt::format("--logit-bias {}: ID=BIAS would work, for example 15=-100", one)};
    made.push_back(bias);
  }
  return made;
}

result<text_request> make_defaults(const generate_options& options,
                                   const generate_settings& settings) {
  text_request made;
  auto biases = read_biases(options.logit_bias);
  if (!biases)
    return biases.error();
  made.bias = std::move(*biases);
  if (!options.schema.empty()) {
    std::ifstream in(options.schema, std::ios::binary);
    made.schema = read_all(in);
    if (!in || made.schema.empty())
      return error{errc::not_found,
                   fmt::format("cannot read the JSON schema {}", options.schema.string())};
  }
  auto& choice = made.sampling;
  choice.temperature = options.temperature.value_or(static_cast<float>(settings.temperature));
  choice.top_k = options.top_k.value_or(static_cast<std::uint32_t>(settings.top_k));
  choice.top_p = options.top_p.value_or(static_cast<float>(settings.top_p));
  choice.min_p = options.min_p.value_or(static_cast<float>(settings.min_p));
  choice.repetition_penalty =
    options.repetition_penalty.value_or(static_cast<float>(settings.repetition_penalty));
  choice.frequency_penalty = options.frequency_penalty.value_or(0.0f);
  choice.presence_penalty = options.presence_penalty.value_or(0.0f);
  choice.seed = options.seed.value_or(settings.seed);
  made.max_tokens = options.max_tokens.value_or(static_cast<std::uint32_t>(settings.max_tokens));
  made.stop = options.stop;
  made.ignore_end = options.ignore_end;
  made.with_digests = options.digests;
  made.with_logprobs = options.json;
  made.top_logprobs = options.logprobs;
  return made;
}

result<std::vector<text_request>> read_requests(const generate_options& options,
                                                const text_request& defaults) {
  if (options.prompts_file == "-")
    return read_prompt_lines(read_all(std::cin), "standard input", defaults);
  if (!options.prompts_file.empty()) {
    std::ifstream in(options.prompts_file, std::ios::binary);
    if (!in)
      return error{errc::not_found,
                   fmt::format("cannot read the prompts file {}", options.prompts_file.string())};
    return read_prompt_lines(read_all(in), options.prompts_file.string(), defaults);
  }
  auto one = defaults;
  if (options.prompt) {
    one.prompt = *options.prompt;
  } else {
    if (::isatty(STDIN_FILENO) == 1)
      fmt::print(stderr, "reading the prompt from standard input; Ctrl-D ends it\n");
    one.prompt = read_all(std::cin);
    if (one.prompt.ends_with('\n'))
      one.prompt.pop_back();
  }
  return std::vector<text_request>{one};
}

result<void> check_requests(const std::vector<text_request>& requests) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (auto good = compute::validate(requests[i].sampling); !good)
      return requests.size() == 1 ? good.error()
                                  : with_context(fmt::format("prompt {}", i + 1), good.error());
  }
  return {};
}

// Writes answers to standard output: one as it comes, many in the order of their prompts, each as
// far as those before it are complete.
class answer_writer {
public:
  answer_writer(const generate_options& options,
                const std::vector<text_request>& requests,
                std::atomic<bool>& cancel)
    : options_(options), requests_(requests), cancel_(cancel) {}

  void hear(std::size_t index, const std::string& piece) {
    if (first_heard_ == clock::time_point{})
      first_heard_ = clock::now();
    if (options_.json || requests_.size() > 1)
      return;
    if (!begun_ && options_.echo)
      put(requests_[index].prompt);
    begun_ = true;
    put(piece);
    std::fflush(stdout);
  }

  void finish(const std::vector<text_answer>& answers,
              const std::optional<actors::simulated_run>& forecast) {
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (options_.json)
        put(
          answer_json(i, requests_[i], answers[i], forecast ? &forecast->requests.at(i) : nullptr));
      else if (requests_.size() > 1)
        put((options_.echo ? requests_[i].prompt : "") + answers[i].text);
      put("\n");
    }
    if (std::fflush(stdout) != 0)
      closed_ = true;
  }

  clock::time_point first_heard() const { return first_heard_; }

  // Nobody reads standard output any more.
  bool closed() const { return closed_; }

private:
  void put(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
      closed_ = cancel_ = true;
  }

  const generate_options& options_;
  const std::vector<text_request>& requests_;
  std::atomic<bool>& cancel_;
  bool begun_ = false;
  bool closed_ = false;
  clock::time_point first_heard_{};
};

// Gauges arrive with the nodes' beats: waits until they show this run's rows.
result<traffic> read_final_traffic(cluster_client& client,
                                   const traffic& before,
                                   std::uint64_t rows,
                                   milliseconds deadline) {
  const auto give_up = clock::now() + std::min(deadline, milliseconds(1500));
  auto after = read_traffic(client, deadline);
  while (after && after->rows < before.rows + rows && clock::now() < give_up) {
    std::this_thread::sleep_for(milliseconds(50));
    after = read_traffic(client, deadline);
  }
  return after;
}

void print_last_line(const std::vector<text_answer>& answers,
                     clock::time_point first_heard,
                     clock::time_point ended,
                     const traffic& before,
                     const traffic& after,
                     const std::optional<actors::simulated_run>& forecast) {
  std::size_t tokens = 0;
  double first_token_s = 0;
  for (const auto& answer : answers) {
    tokens += answer.tokens.size();
    first_token_s = std::max(first_token_s, answer.first_token_s);
  }
  const double decode_s = std::chrono::duration<double>(ended - first_heard).count();
  const auto decoded = tokens > answers.size() ? tokens - answers.size() : 0;
  std::string line = fmt::format("{}", counted(tokens, "token"));
  const bool heard = first_heard != clock::time_point{}; // Tokens need not make text.
  if (decoded > 0 && heard && decode_s > 0)
    line += fmt::format(", {:.1f} tokens/s", static_cast<double>(decoded) / decode_s);
  line += fmt::format(", first after {:.0f} ms", first_token_s * 1e3);
  if (forecast && decoded > 0)
    line += fmt::format(" (forecast {:.1f} and {:.0f} ms)",
                        forecast->decode_rate(),
                        forecast->filled_s(answers.size()) * 1e3);
  line += "; ";
  if (const auto bytes = bytes_per_boundary(before, after); bytes > 0)
    line += fmt::format("{} per token and boundary; ",
                        bytes_text(static_cast<std::uint64_t>(bytes + 0.5)));
  line += fmt::format("{} ({} x {} tensor)",
                      counted(after.ranks, "rank"),
                      counted(after.stages, "stage"),
                      after.tensor);
  if (!after.transports.empty())
    line += fmt::format("; transports: {}", after.transports);
  fmt::print(stderr, "{}\n", line);
}

int report_failures(const std::vector<text_answer>& answers) {
  int code = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto& answer = answers[i];
    if (answer.finish != "error" && answer.finish != "cancelled")
      continue;
    const error what{answer.finish == "error" ? answer.code : errc::cancelled,
                     answer.what.empty() ? answer.finish : answer.what};
    const int its_code =
      fail(answers.size() == 1 ? what : with_context(fmt::format("prompt {}", i + 1), what));
    code = code == 0 ? its_code : code;
  }
  return code;
}

/// A cluster that runs may have other settings, and work for others: nothing is forecast of it.
enum class whose : std::uint8_t { own, running };

int generate(cluster_client& client,
             const generate_options& options,
             const cluster_settings& settings,
             const std::vector<text_request>& requests,
             whose cluster) {
  const milliseconds patience(settings.deadlines.status_ms);
  const auto before = read_traffic(client, patience);
  if (!before)
    return fail(before.error());
  std::atomic<bool> cancel{false};
  answer_writer writer(options, requests, cancel);
  clock::time_point ended;
  const auto answers = [&] {
    const cancel_on_signal watch(cancel);
    auto given = client.generate(
      requests,
      [&](std::size_t index, const std::string& piece) { writer.hear(index, piece); },
      cancel);
    ended = clock::now(); // before the watch has looked once more
    return given;
  }();
  if (!answers)
    return fail(answers.error());
  const auto forecast =
    cluster == whose::own && !cancel ? forecast_run(settings, *answers) : std::nullopt;
  writer.finish(*answers, forecast);
  if (writer.closed())
    return fail({errc::io_error, "nobody reads standard output any more"});
  if (cancel)
    return fail({errc::cancelled, "interrupted"});
  const int code = report_failures(*answers);
  std::uint64_t rows = 0;
  for (const auto& answer : *answers)
    rows += answer.tokens.empty() ? 0 : answer.prompt_tokens + answer.tokens.size() - 1;
  if (code == 0 && !options.quiet) {
    if (const auto after = read_final_traffic(client, *before, rows, patience))
      print_last_line(*answers, writer.first_heard(), ended, *before, *after, forecast);
  }
  return code;
}

// A cluster of our own, in a run folder of its own, for the time of this command.
int generate_embedded(const generate_options& options,
                      const cluster_settings& settings,
                      const std::vector<text_request>& requests) {
  auto cluster =
    local_cluster::start_for_command(settings, options.cluster, options.show_logs, options.quiet);
  if (!cluster)
    return fail(cluster.error());
  if (!options.quiet) {
    if (const auto ranks = describe_ranks((*cluster)->client(), milliseconds(2000)))
      fmt::print(stderr, "{}", *ranks);
  }
  const int code = generate((*cluster)->client(), options, settings, requests, whose::own);
  const auto stopped = (*cluster)->stop();
  return code != 0 || stopped ? code : fail(stopped.error());
}

// What --set says about a cluster that runs would have no effect: keys that only the asker uses may
// be set.
result<void> check_overrides(const generate_options& options, const cluster_settings& settings) {
  for (const auto& override : options.cluster.overrides) {
    const bool is_ours = override.starts_with("security.") || override.starts_with("generate.")
                         || override.starts_with("deadlines.");
    if (!is_ours)
      return error{errc::invalid_argument,
                   fmt::format("{} runs already, with settings of its own: --set {} would have no "
                               "effect; stop it first, or leave this away",
                               settings.file,
                               override)};
  }
  return {};
}

} // namespace

int run_generate_command(const generate_options& options) {
  const auto settings = read_cluster(options.cluster);
  if (!settings)
    return fail(settings.error());
  const auto defaults = make_defaults(options, settings->generate);
  if (!defaults)
    return fail(defaults.error());
  const auto requests = read_requests(options, *defaults);
  if (!requests)
    return fail(requests.error());
  if (auto good = check_requests(*requests); !good)
    return fail(good.error());
  auto client = find_running(*settings);
  if (!client)
    return fail(client.error());
  if (*client == nullptr)
    return generate_embedded(options, *settings, *requests);
  if (auto good = check_overrides(options, *settings); !good)
    return fail(good.error());
  return generate(**client, options, *settings, *requests, whose::running);
}

} // namespace troupe::cli
