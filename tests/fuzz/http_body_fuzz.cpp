// The body of a request of the HTTP API. The first byte says of which one; the rest is the body.

#include "actors/serve/api_request.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace troupe::actors::serve;

namespace {

void require(bool holds) {
  if (!holds)
    std::abort();
}

/// A mistake is told: with a status that blames the client, in words, and as JSON.
void check_mistake(const api_error& wrong) {
  require(wrong.status == 400);
  require(!wrong.message.empty());
  const auto told = error_response(wrong);
  require(told.body.starts_with("{\"error\":{\"message\":") && told.body.ends_with("}}"));
}

void read_wish(std::string_view body, bool chat, const api_rules& rules) {
  completion_wish wish;
  if (const auto wrong = read_completion(body, chat, rules, wish))
    return check_mistake(*wrong);
  require(chat ? !wish.messages.empty() : !wish.prompts.empty());
  require(wish.n >= 1 && wish.prompts.size() * wish.n <= rules.max_choices);
  require(wish.sampling.temperature >= 0 && wish.sampling.top_p > 0);
  require(wish.top_logprobs <= 20 && (wish.top_logprobs == 0 || wish.with_logprobs));
  for (std::size_t i = 0; i < wish.bias.size(); ++i) {
    require(wish.bias[i].token < rules.vocabulary);
    require(wish.bias[i].bias >= -100 && wish.bias[i].bias <= 100);
    require(i == 0 || wish.bias[i - 1].token < wish.bias[i].token);
  }
  for (const auto& stop : wish.stop)
    require(!stop.empty());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  api_rules rules;
  rules.vocabulary = 2048;
  rules.refuse_unknown = (data[0] & 0x80U) == 0;
  switch (data[0] & 3U) {
  case 0: read_wish(body, false, rules); break;
  case 1: read_wish(body, true, rules); break;
  case 2: {
    tokenize_wish wish;
    if (const auto wrong = read_tokenize(body, rules, wish))
      check_mistake(*wrong);
    break;
  }
  default: {
    detokenize_wish wish;
    if (const auto wrong = read_detokenize(body, rules, wish))
      check_mistake(*wrong);
    else
      require(!wish.tokens.empty());
  }
  }
  return 0;
}
