#include "actors/cli/command.hpp"
#include "actors/cli/plan_report.hpp"
#include "actors/cli/text_table.hpp"
#include "compute/batch.hpp"
#include "transport/frame.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::cli {

std::string shape_words(const compute::model_shape& shape) {
  return fmt::format("{}, hidden {}, {} of {}, {}, ffn {}, vocabulary {}",
                     counted(shape.layers, "layer"),
                     shape.hidden,
                     counted(shape.heads, "head"),
                     shape.head_dim,
                     counted(shape.kv_heads, "KV head"),
                     shape.ffn,
                     shape.vocabulary);
}

namespace {

constexpr auto right = text_table::side::right;

std::string model_lines(const plan_report& report) {
  const auto& shape = report.shape;
  return fmt::format("model   {}\n"
                     "        {}: {}{}\n"
                     "        stored {}, held {}, context {}\n"
                     "digest  {}\n",
                     report.model_folder,
                     shape.family,
                     shape_words(shape),
                     shape.tied_head ? ", tied head" : "",
                     to_string(shape.stored),
                     to_string(report.plan.hold),
                     shape.context,
                     report.model_digest);
}

std::string plan_lines(const plan_report& report) {
  const auto& plan = report.plan;
  const auto per_sequence = compute::pages_for(plan.context);
  return fmt::format("split   {} x {} = {}\n"
                     "state   {}{} of {} tokens on every rank; a sequence of {} tokens takes {}: "
                     "room for {} of {}\n",
                     counted(plan.sizes.pipeline, "stage"),
                     counted(plan.sizes.tensor, "tensor rank"),
                     counted(plan.ranks.size(), "rank"),
                     report.fits() ? "" : "DOES NOT FIT: ",
                     counted(plan.pages, "page"),
                     compute::kv_page_tokens,
                     plan.context,
                     per_sequence,
                     report.fits() ? plan.pages / per_sequence : 0,
                     plan.max_sequences);
}

/// Which rows of the vocabulary a rank needs: those of the table, of the head, of both, or none.
std::string vocabulary_text(const actors::rank_plan& rank) {
  const auto& record = rank.record;
  if (!record.owns_input && !record.owns_output)
    return "-";
  return fmt::format("{} {}",
                     range_text(rank.shard.vocabulary),
                     !record.owns_output  ? "in"
                     : !record.owns_input ? "out"
                                          : "in+out");
}

std::string rank_table(const plan_report& report) {
  text_table table{{{"rank", right},
                    {"node"},
                    {"stage", right},
                    {"tensor", right},
                    {"layers"},
                    {"heads"},
                    {"KV heads"},
                    {"ffn columns"},
                    {"vocabulary rows"},
                    {"weights", right},
                    {"state", right},
                    {"scratch", right},
                    {"total", right}}};
  for (const auto& rank : report.plan.ranks)
    table.add({fmt::format("{}", number(rank.rank)),
               report.nodes[rank.node].name,
               fmt::format("{}", rank.where.pipeline),
               fmt::format("{}", rank.where.tensor),
               range_text(rank.record.units),
               range_text(rank.shard.heads),
               range_text(rank.shard.kv_heads),
               range_text(rank.shard.ffn),
               vocabulary_text(rank),
               bytes_text(rank.weight_bytes),
               bytes_text(rank.state_bytes),
               bytes_text(rank.scratch_bytes),
               bytes_text(rank.total_bytes())});
  return table.text();
}

std::string node_table(const plan_report& report) {
  text_table table{{{"node"},
                    {"address"},
                    {"ranks", right},
                    {"needed", right},
                    {"at least", right},
                    {"budget", right},
                    {"found", right}}};
  for (const auto& node : report.plan.nodes)
    table.add(
      {report.nodes[node.node].name,
       report.nodes[node.node].address,
       fmt::format("{}", report.nodes[node.node].ranks),
       bytes_text(node.needed_bytes),
       bytes_text(node.least_bytes),
       node.budget_known ? bytes_text(node.budget_bytes) : "unknown",
       node.is_here && report.found_bytes > 0 ? bytes_text(report.found_bytes) : "unknown"});
  return table.text();
}

std::string traffic_lines(const plan_report& report) {
  const auto& plan = report.plan;
  std::string text;
  for (std::size_t stage = 0; stage + 1 < plan.sizes.pipeline; ++stage)
    text += fmt::format("stage {} -> {}: {} x {} B a row ({} x {}), and a header of {} B a step\n",
                        stage,
                        stage + 1,
                        counted(plan.sizes.tensor, "link"),
                        plan.boundary_row_bytes,
                        report.shape.hidden,
                        to_string(report.wire),
                        transport::wire_header_bytes);
  for (const auto& rank : plan.ranks) {
    if (plan.sizes.tensor == 1 || rank.where.tensor != 0)
      continue;
    text += fmt::format("stage {}: its {} ranks sum {} B a row",
                        rank.where.pipeline,
                        plan.sizes.tensor,
                        rank.reduce_row_bytes);
    text += rank.gather_row_bytes == 0
              ? "\n"
              : fmt::format(", and gather {} B of logits a token\n", rank.gather_row_bytes);
  }
  return text.empty() ? "nothing travels: one rank\n" : text;
}

std::string rates_line(const actors::rates& rates) {
  return fmt::format("{}: prompts {:.4g} tokens/s, first token after {:.3g} ms, answers {:.4g} "
                     "tokens/s; stages idle {:.0f} %\n",
                     counted(rates.streams, "stream"),
                     rates.prompt_tokens_per_s,
                     1e3 * rates.first_token_s,
                     rates.answer_tokens_per_s,
                     100 * rates.bubble);
}

/// As if every host were like this one.
std::string speed_lines(const plan_report& report) {
  if (!report.speed)
    return "forecast none: this host was not measured (--calibrate does, in two seconds)\n";
  const auto& one = report.speed->one;
  const auto& many = report.speed->many;
  const auto again = many.streams > one.streams ? "         " + rates_line(many) : "";
  return fmt::format("forecast {}{}         prompts of {} and answers of {} tokens, {} a token on "
                     "all wires{}\n"
                     "         this host streams {:.3g} GB of weights a second on {}: a weight for "
                     "its nodes, beside the same figure of others\n",
                     rates_line(one),
                     again,
                     one.prompt,
                     one.answer,
                     bytes_text(static_cast<std::uint64_t>(one.bytes_per_token + 0.5)),
                     report.all_here() ? "" : "; other hosts are taken to be like this one",
                     1e-9 * report.speed->weights_per_s,
                     counted(report.speed->cores, "core"));
}

} // namespace

std::string plan_text(const plan_report& report) {
  return fmt::format("cluster {} ({})\n{}{}\n{}\n{}\n{}\n{}",
                     report.cluster,
                     report.file,
                     model_lines(report),
                     plan_lines(report),
                     rank_table(report),
                     traffic_lines(report),
                     node_table(report),
                     speed_lines(report));
}

} // namespace troupe::cli
