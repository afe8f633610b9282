#pragma once
// The answers of the API as JSON on one line, in the shapes of OpenAI's text_completion and
// chat.completion objects and their chunks. Always valid JSON in UTF-8.

#include "actors/serve/logprobs.hpp"
#include "config/ids.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::actors::serve {

/// What all answers to one request share.
struct answer_names {
  bool chat = false;
  bool with_logprobs = false;
  std::uint32_t top_logprobs = 0;
  bool with_usage = false; ///< Chunks: say "usage": null where it does not come yet.
  std::string id;          ///< "cmpl-...", "chatcmpl-..."
  std::string model;
  std::int64_t created = 0; ///< Seconds since 1970.
};

struct choice_text {
  std::string text;
  std::string finish; ///< "stop" or "length".
  std::vector<token_likelihood> likely;
};

struct token_usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
};

/// A whole answer.
std::string completion_json(const answer_names& names,
                            std::span<const choice_text> choices,
                            const token_usage& usage);

/// Chat: the first chunk of a choice.
std::string role_chunk(const answer_names& names, std::size_t choice);

/// More text of a choice, and the tokens behind it where they are asked for.
std::string text_chunk(const answer_names& names,
                       std::size_t choice,
                       const std::string& text,
                       std::span<const token_likelihood> likely);

/// The last chunk of a choice.
std::string finish_chunk(const answer_names& names, std::size_t choice, const std::string& finish);

/// The last chunk of all, where it is asked for; no choice is in it.
std::string usage_chunk(const answer_names& names, const token_usage& usage);

/// GET /v1/models and /v1/models/{name}.
struct model_facts {
  std::string name;
  std::int64_t created = 0;
  std::uint64_t context = 0; ///< Tokens of prompt and answer together.
};

std::string model_list_json(const model_facts& model);
std::string model_json(const model_facts& model);

/// POST /tokenize; `pieces` may be empty.
std::string tokens_json(std::span<const token_id> tokens,
                        std::span<const std::string> pieces,
                        std::uint64_t context);

/// GET /health/live, /health/ready: {"status": "ok" or "not ready", "reason", "since_ms"}.
struct health_facts {
  bool good = false;
  std::string reason;
  std::optional<std::int64_t> since_ms; ///< Of this state.
};

std::string health_json(const health_facts& facts);

/// POST /detokenize.
std::string prompt_json(const std::string& text);

} // namespace troupe::actors::serve
