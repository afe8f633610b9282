#include "tests/support/stage_grid.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>

namespace troupe::tests {
namespace {

/// One rank's whole pass.
result<compute::partition_output> run_pass(compute::partition& part,
                                           const compute::partition_input& input,
                                           const compute::batch& rows,
                                           compute::partition_state& state) {
  if (auto begun = part.begin(input, rows, state, 0); !begun)
    return begun.error();
  if (auto entered = part.enter(); !entered)
    return entered.error();
  while (const auto unit = part.next_unit())
    if (auto done = part.forward_unit(*unit); !done)
      return done.error();
  if (auto left = part.leave(); !left)
    return left.error();
  return part.finish(part.record().owns_output);
}

bool same_bits(const compute::buffer& left, const compute::buffer& right) {
  return left.size() == right.size()
         && (left.size() == 0 || std::memcmp(left.data(), right.data(), left.size()) == 0);
}

/// Of the last stage, its whole logits; of others their hidden rows.
const compute::buffer& values_of(const compute::partition_output& output) {
  const auto* final = std::get_if<compute::final_output>(&output);
  return final ? final->logits : std::get<compute::boundary_output>(output).hidden;
}

bool all_finite(const compute::partition_output& output) {
  const auto* final = std::get_if<compute::final_output>(&output);
  const auto& finite = final ? final->finite : std::get<compute::boundary_output>(output).finite;
  return std::find(finite.begin(), finite.end(), false) == finite.end();
}

bool same_candidates(const compute::final_output& left, const compute::final_output& right) {
  return std::equal(left.candidates.begin(),
                    left.candidates.end(),
                    right.candidates.begin(),
                    right.candidates.end(),
                    [](const auto& one, const auto& other) {
                      return one.ids == other.ids && one.logits == other.logits;
                    });
}

/// The output of all ranks of a stage, which is one.
compute::partition_output
common_output(const std::vector<std::optional<result<compute::partition_output>>>& outputs) {
  for (const auto& one : outputs) {
    BOOST_REQUIRE_MESSAGE(*one, (*one ? "" : one->error().what));
    BOOST_REQUIRE(all_finite(**one));
    BOOST_REQUIRE(same_bits(values_of(**one), values_of(**outputs.front())));
    if (const auto* final = std::get_if<compute::final_output>(&**one))
      BOOST_REQUIRE(same_candidates(*final, std::get<compute::final_output>(**outputs.front())));
  }
  return **outputs.front();
}

} // namespace

stage_grid::stage_grid(std::shared_ptr<const compute::model> source, const options& wanted)
  : source_(std::move(source)), wanted_(wanted) {
  for (std::size_t stage = 0; stage < wanted_.stages; ++stage) {
    stage_parts parts{std::make_unique<thread_group>(wanted_.tensor), {}};
    for (std::size_t tensor = 0; tensor < wanted_.tensor; ++tensor)
      parts.ranks.push_back(
        load_rank({.units = split_part(source_->shape().layers, wanted_.stages, stage),
                   .owns_input = stage == 0,
                   .owns_output = stage + 1 == wanted_.stages,
                   .tensor_rank = tensor,
                   .tensor_size = wanted_.tensor},
                  *parts.group));
    stages_.push_back(std::move(parts));
  }
}

stage_grid::rank_parts stage_grid::load_rank(const compute::partition_record& record,
                                             thread_group& group) const {
  auto where = compute::make_device("cpu", {.threads = wanted_.threads, .cores = {}});
  BOOST_REQUIRE_MESSAGE(where, (where ? "" : where.error().what));
  rank_parts parts{*std::move(where), group.member(record.tensor_rank), nullptr, {}};
  auto loaded =
    compute::partition::load(source_, record, wanted_.hold, *parts.where, *parts.group, {});
  BOOST_REQUIRE_MESSAGE(loaded, (loaded ? "" : loaded.error().what));
  parts.loaded = *std::move(loaded);
  auto state = parts.loaded->make_state(wanted_.pages);
  BOOST_REQUIRE_MESSAGE(state, (state ? "" : state.error().what));
  parts.state = *std::move(state);
  return parts;
}

compute::final_output stage_grid::run(const compute::batch& rows,
                                      const std::vector<token_id>& tokens) {
  compute::partition_input input = compute::token_input{tokens};
  for (auto& stage : stages_) {
    std::vector<std::optional<result<compute::partition_output>>> outputs(stage.ranks.size());
    {
      std::vector<std::jthread> team;
      for (std::size_t i = 0; i < stage.ranks.size(); ++i)
        team.emplace_back([&, i] {
          auto& rank = stage.ranks[i];
          outputs[i] = run_pass(*rank.loaded, input, rows, rank.state);
        });
    }
    auto common = common_output(outputs);
    if (auto* final = std::get_if<compute::final_output>(&common))
      return std::move(*final);
    input = compute::hidden_input{std::get<compute::boundary_output>(common).hidden};
  }
  return {};
}

logits_rows stage_grid::step(const compute::batch& rows, const std::vector<token_id>& tokens) {
  const auto output = run(rows, tokens);
  const auto values = output.logits.as<float>();
  logits_rows logits;
  for (std::size_t row = 0; row < rows.output_rows(); ++row) {
    const auto part = values.subspan(row * vocabulary(), vocabulary());
    logits.emplace_back(part.begin(), part.end());
  }
  return logits;
}

growing_text::growing_text(std::vector<token_id> prompt, std::uint32_t first_page)
  : tokens_(std::move(prompt)), first_page_(first_page) {}

void growing_text::add_rows(std::size_t count,
                            compute::batch& rows,
                            std::vector<token_id>& tokens) {
  compute::sequence_rows sequence;
  sequence.first_row = static_cast<std::uint32_t>(rows.rows());
  sequence.position = static_cast<std::uint32_t>(done_);
  sequence.count = static_cast<std::uint32_t>(count);
  const auto pages = (done_ + count + compute::kv_page_tokens - 1) / compute::kv_page_tokens;
  for (std::uint32_t page = 0; page < pages; ++page)
    sequence.pages.push_back(static_cast<page_id>(first_page_ + page));
  rows.sequences.push_back(sequence);
  const auto begin = tokens_.begin() + static_cast<std::ptrdiff_t>(done_);
  tokens.insert(tokens.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
  done_ += count;
}

token_id argmax(const std::vector<float>& logits) {
  return static_cast<token_id>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

logits_rows run_prompt(stage_grid& grid, growing_text& text, std::size_t chunk) {
  logits_rows logits;
  while (text.waiting() > 0) {
    compute::batch rows;
    std::vector<token_id> tokens;
    text.add_rows(std::min(chunk, text.waiting()), rows, tokens);
    logits.push_back(grid.step(rows, tokens).front());
  }
  return logits;
}

greedy_run run_greedy(stage_grid& grid,
                      const std::vector<token_id>& prompt,
                      std::size_t chunk,
                      std::size_t count) {
  greedy_run run;
  growing_text text(prompt, 0);
  auto last = run_prompt(grid, text, chunk).back();
  while (run.ids.size() < count) {
    run.ids.push_back(argmax(last));
    run.logits.push_back(last);
    text.append(run.ids.back());
    last = run_prompt(grid, text, 1).back();
  }
  return run;
}

} // namespace troupe::tests
