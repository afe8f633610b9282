#pragma once
// A client of a running cluster: asks for text and for status over the head's control port. Hides
// the actor framework from the command line. One thread uses a client at a time; calls block up to
// their deadlines; callbacks come from within the calls.

#include "compute/sampler.hpp"
#include "config/result.hpp"
#include "config/settings.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::actors {

struct cluster_status;
struct trace_report;

/// One wish for text.
struct text_request {
  std::string prompt;
  std::vector<token_id> tokens; ///< The prompt as ids; used instead of `prompt` when not empty.
  compute::sampling sampling;
  std::uint32_t max_tokens = 0;
  std::vector<std::string> stop;
  bool ignore_end = false;
  bool with_digests = false;
  bool with_logprobs = false;
  std::uint32_t top_logprobs = 0; ///< Most probable tokens to report for each token; 0 ... 20.
  std::vector<compute::logit_bias> bias;
  std::string schema; ///< JSON schema that the answer follows; empty: any text.
};

/// What became of it.
struct text_answer {
  std::string text;
  std::vector<token_id> tokens;
  std::vector<float> logprobs;                       ///< Where asked for.
  std::vector<std::vector<compute::token_odds>> top; ///< Where asked for.
  std::vector<std::uint64_t> digests;
  std::string finish; ///< "stop", "length", "cancelled" or "error".
  std::string what;   ///< For errors.
  errc code = errc::compute_error;
  std::uint32_t prompt_tokens = 0;
  double queued_s = 0;
  double first_token_s = 0;
  double total_s = 0;
};

class cluster_client {
public:
  /// Connects to the head: its address and port from the settings, or from the run folder where the
  /// port is automatic. Errors: unreachable (nothing listens there), unauthorised, mismatch.
  static result<std::unique_ptr<cluster_client>> connect(const cluster_settings& settings,
                                                         const std::filesystem::path& run_folder,
                                                         std::chrono::milliseconds deadline);

  virtual ~cluster_client() = default;

  virtual result<cluster_status> status(std::chrono::milliseconds deadline) = 0;

  /// Runs all requests at once and returns their answers in the same order. on_text is called with
  /// the index of the request and each new piece. Setting `cancel` withdraws what still runs.
  using text_handler = std::function<void(std::size_t index, const std::string& piece)>;
  virtual result<std::vector<text_answer>> generate(const std::vector<text_request>& requests,
                                                    const text_handler& on_text,
                                                    const std::atomic<bool>& cancel) = 0;

  /// Lets the cluster go on without a node, which ends then. Returns once that has begun. Errors:
  /// not_found (no such node, or it is not here), invalid_argument (the head, or too few stages
  /// would be left: both numbers).
  virtual result<void> drain(const std::string& node, std::chrono::milliseconds deadline) = 0;

  /// Lets something go wrong on purpose; answers where and from when on, for people. Errors:
  /// invalid_config that names the option.
  virtual result<std::string> inject(const fault_settings& wanted,
                                     std::chrono::milliseconds deadline) = 0;

  /// The next steps of all ranks, by the head's clock. Waits for them up to `patience`; what there
  /// is by then is the answer. Errors: not_now (it does not serve, or is traced already).
  virtual result<trace_report> trace(std::uint32_t steps,
                                     std::chrono::milliseconds patience,
                                     std::chrono::milliseconds deadline) = 0;

  /// Ends the whole cluster in good order.
  virtual result<void> stop(const std::string& reason, std::chrono::milliseconds deadline) = 0;
};

} // namespace troupe::actors
