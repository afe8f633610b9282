#include "compute/pass_checks.hpp"

#include "compute/candidates.hpp"

#include <fmt/core.h>

namespace troupe::compute {
namespace {

error broken(std::string sentence) {
  return {errc::contract_violation, std::move(sentence)};
}

result<void> check_tokens(const token_input& input,
                          std::size_t rows,
                          const partition_record& record,
                          const model_shape& shape) {
  if (!record.owns_input)
    return broken(fmt::format("tokens were given to a partition of layers [{}, {}), which does not "
                              "own input; it takes a hidden tensor",
                              record.units.begin,
                              record.units.end));
  if (input.tokens.size() != rows)
    return broken(fmt::format("{} tokens were given for {} rows", input.tokens.size(), rows));
  for (const auto token : input.tokens)
    if (token >= shape.vocabulary)
      return error{
        errc::invalid_argument,
        fmt::format("token {} is outside of the vocabulary of {}", token, shape.vocabulary)};
  return {};
}

} // namespace

result<void> check_rows(const batch& rows, std::size_t context) {
  if (rows.sequences.empty())
    return broken("a pass has no rows");
  std::size_t next = 0;
  for (const auto& sequence : rows.sequences) {
    if (sequence.count == 0)
      return broken(fmt::format("the sequence at row {} has no rows", sequence.first_row));
    if (sequence.first_row != next)
      return broken(fmt::format(
        "a sequence starts at row {}; the one before ends at row {}", sequence.first_row, next));
    next += sequence.count;
    if (sequence.candidates > most_candidates)
      return broken(fmt::format("the sequence at row {} asks for {} candidates; {} are the most",
                                sequence.first_row,
                                sequence.candidates,
                                most_candidates));
    const auto end = std::size_t{sequence.position} + sequence.count;
    if (end > context)
      return error{
        errc::invalid_argument,
        fmt::format("a sequence reaches position {}; the model's context is {}", end, context)};
  }
  return {};
}

result<void> check_input(const partition_input& input,
                         std::size_t rows,
                         const partition_record& record,
                         const model_shape& shape) {
  if (const auto* tokens = std::get_if<token_input>(&input))
    return check_tokens(*tokens, rows, record, shape);
  const auto given = std::get<hidden_input>(input).hidden.size();
  const auto needed = rows * shape.hidden * sizeof(float);
  if (given != needed)
    return broken(fmt::format("a hidden tensor of {} bytes was given; {} rows of {} values need {}",
                              given,
                              rows,
                              shape.hidden,
                              needed));
  return {};
}

result<void> check_state(const partition_state& state,
                         const state_layout& expected,
                         std::size_t first_state_ordinal) {
  if (state.layout != expected || !state.cache)
    return broken(fmt::format("the state has another layout ({} segments from unit {}) than the "
                              "partition expects ({} segments from unit {})",
                              state.layout.segments.size(),
                              state.layout.first_unit,
                              expected.segments.size(),
                              expected.first_unit));
  if (first_state_ordinal >= expected.segments.size())
    return broken(fmt::format("the first state ordinal is {}, beyond the {} local segments",
                              first_state_ordinal,
                              expected.segments.size()));
  if (first_state_ordinal != 0)
    return broken(
      fmt::format("the first state ordinal is {}; it is local, so 0 for the first owned "
                  "layer (unit {})",
                  first_state_ordinal,
                  expected.first_unit));
  return {};
}

result<void> check_pages(const batch& rows, const kv_cache& cache) {
  for (const auto& sequence : rows.sequences) {
    const auto end = std::size_t{sequence.position} + sequence.count;
    const auto needed = (end + kv_page_tokens - 1) / kv_page_tokens;
    if (sequence.pages.size() < needed)
      return broken(fmt::format("a sequence of {} positions has {} pages; {} are needed",
                                end,
                                sequence.pages.size(),
                                needed));
    for (const auto page : sequence.pages)
      if (number(page) >= cache.shape().pages)
        return broken(
          fmt::format("page {} was given; the state has {}", number(page), cache.shape().pages));
  }
  return {};
}

} // namespace troupe::compute
