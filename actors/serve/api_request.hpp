#pragma once
// What the requests of the API ask for: JSON bodies as plain values, checked field by field.
//
// The rule for parameters: null is the same as absent. A field that is known is checked, and one
// that would change the answer but is not implemented is refused unless it has its neutral value.
// Fields that cannot change the answer ("user", "store", "metadata" ...) are accepted and ignored.
// A field that is not known at all is refused or ignored as serve.unknown_parameters says.

#include "actors/serve/api_error.hpp"
#include "compute/sampler.hpp"
#include "config/ids.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors::serve {

/// A prompt as text or as ids.
struct api_prompt {
  std::string text;
  std::vector<token_id> tokens; ///< Used where not empty.
};

/// POST /v1/completions and /v1/chat/completions.
struct completion_wish {
  bool chat = false;
  std::string model;               ///< Empty: not said.
  std::vector<api_prompt> prompts; ///< /v1/completions: at least one.
  std::string messages;            ///< Chat: the array as JSON text.
  std::string tools;               ///< Chat: likewise; empty: none for the template.
  std::string template_arguments;  ///< Chat: an object as JSON text; empty: none.
  compute::sampling sampling;
  std::optional<std::uint64_t> seed;
  std::optional<std::uint32_t> max_tokens;
  std::vector<std::string> stop;
  std::uint32_t n = 1; ///< Answers to each prompt.
  bool stream = false;
  bool include_usage = false;
  bool ignore_end = false; ///< "ignore_eos": go on after the model's end token.
  bool with_logprobs = false;
  std::uint32_t top_logprobs = 0; ///< Likely tokens beside each one; 0 ... 20.
  std::vector<compute::logit_bias> bias;
  bool follows_schema = false; ///< response_format is json_schema.
  std::string schema;          ///< That the answer follows; empty: any text.
};

/// What the reader is bound to.
struct api_rules {
  bool refuse_unknown = true;
  std::size_t nesting = 64;
  std::size_t max_choices = 16;
  std::size_t vocabulary = std::size_t{1} << 22; ///< Ids of logit_bias lie below it.
};

/// Fills `into`, which holds the defaults. The first mistake, with the field and what is allowed;
/// nothing when all is well.
std::optional<api_error>
read_completion(std::string_view body, bool chat, const api_rules& rules, completion_wish& into);

/// POST /tokenize: {"prompt", "add_special_tokens": true}; "content" is another name of "prompt".
struct tokenize_wish {
  std::string text;
  bool add_special = true;
  bool with_pieces = false; ///< "return_token_strs"
};

std::optional<api_error>
read_tokenize(std::string_view body, const api_rules& rules, tokenize_wish& into);

/// POST /detokenize: {"tokens": [...]}.
struct detokenize_wish {
  std::vector<token_id> tokens;
};

std::optional<api_error>
read_detokenize(std::string_view body, const api_rules& rules, detokenize_wish& into);

} // namespace troupe::actors::serve
