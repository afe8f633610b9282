#pragma once
// The steps of a tokenizer.json as values: normalizer, pre_tokenizer, post_processor, decoder.
// Heavy: for .cpp files alone. What is not known is said to the view's problem, by key, with what
// is supported; nothing is skipped.

#include "compute/tokenizer/decoder.hpp"
#include "compute/tokenizer/model_file.hpp"
#include "compute/tokenizer/normalizer.hpp"
#include "compute/tokenizer/pre_tokenizer.hpp"
#include "config/ids.hpp"

#include <vector>

namespace troupe::compute {

void read_normalizer(const json_view& value, normalizer& out);
void read_pre_tokenizer(const json_view& value, pre_tokenizer& out);

/// The tokens that go around one text.
void read_post_processor(const json_view& value,
                         std::vector<token_id>& before,
                         std::vector<token_id>& after);

/// Also refuses an order of steps that cannot be applied token by token.
void read_decoder(const json_view& value, decoder& out);

/// {"String": ...} or {"Regex": ...}; nothing if that was said to be wrong.
std::optional<split_pattern> read_pattern(const json_view& value);

/// Calls `each` for the steps of nested "Sequence" objects, in order, and for a lone step.
template <class Each>
void for_each_step(const json_view& value, const char* list, Each each, int depth = 0) {
  if (value.empty())
    return;
  if (!value.is_object())
    return value.wrong_type("an object with a type");
  if (value["type"].required_text() != "Sequence")
    return each(value);
  value.only({"type", list});
  if (depth > 8)
    return value.say(errc::unsupported, "sequences are nested more than 8 deep");
  auto steps = value[list];
  if (steps.empty())
    steps.wrong_type("an array");
  for (std::size_t at = 0, count = steps.size(); at < count; ++at)
    for_each_step(steps.at(at), list, each, depth + 1);
}

} // namespace troupe::compute
