#include "compute/architectures/decoder_body.hpp"

#include "compute/architectures/decoder_names.hpp"
#include "compute/layers/attention.hpp"
#include "compute/layers/mlp.hpp"
#include "compute/layers/norm.hpp"
#include "compute/layers/vocab_parallel.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

namespace troupe::compute {
namespace {

struct decoder_layer {
  norm attention_norm;
  attention attend;
  norm mlp_norm;
  mlp feed_forward;
};

/// What only first and last stages have.
struct decoder_ends {
  std::optional<vocab_embedding> embedding;
  std::optional<norm> final_norm;
  std::optional<vocab_head> head;
};

class decoder_body final : public partition_body {
public:
  decoder_body(const decoder_spec& spec, const workspace_widths& widths, device& where)
    : spec_(spec), where_(where), scratch_(where, widths) {}

  decoder_ends ends;
  std::vector<decoder_layer> layers;

  result<tensor> begin_partition(const partition_input& input, forward_context& context) override;
  result<tensor>
  forward_unit(std::size_t ordinal, tensor hidden, forward_context& context) override;
  result<partition_output>
  finish_partition(tensor hidden, forward_context& context, bool owns_output) override;

private:
  result<partition_output> finish_final(tensor hidden, forward_context& context);
  void normalise_output_rows(tensor hidden, const batch& rows, tensor out);
  std::vector<bool> find_finite(const final_output& out, tensor normed, tensor logits);
  std::vector<bool> find_finite(tensor x);

  const decoder_spec& spec_;
  device& where_;
  workspace scratch_;
  buffer boundary_; // what the last unit writes where the stage does not own output
};

result<tensor> decoder_body::begin_partition(const partition_input& input,
                                             forward_context& context) {
  const auto rows = context.rows.rows();
  if (auto room = scratch_.reserve(rows); !room)
    return room.error();
  boundary_ = {};
  if (!ends.head) {
    // Sent by reference, and perhaps still on its way when the next pass begins: never used again.
    auto fresh = where_.allocate(rows * spec_.shape.hidden * sizeof(float));
    if (!fresh)
      return fresh.error();
    boundary_ = *std::move(fresh);
  }
  if (const auto* given = std::get_if<hidden_input>(&input))
    return tensor(given->hidden.as<float>().data(), rows, spec_.shape.hidden);
  if (!ends.embedding)
    return error{errc::contract_violation,
                 "tokens reached a partition whose architecture has no embedding here"};
  const auto hidden = scratch_.hidden(rows);
  const auto tokens = std::get<token_input>(input).tokens;
  if (auto done = ends.embedding->forward(tokens, hidden, context.group); !done)
    return done.error();
  return hidden;
}

result<tensor>
decoder_body::forward_unit(std::size_t ordinal, tensor hidden, forward_context& context) {
  const auto& layer = layers[ordinal];
  const auto rows = hidden.rows;
  const auto normed = scratch_.normed(rows);
  const auto middle = scratch_.middle(rows);
  layer.attention_norm.forward(hidden, normed);
  if (auto done = layer.attend.forward(normed,
                                       hidden,
                                       middle,
                                       ordinal,
                                       context.rows,
                                       *context.state.cache,
                                       scratch_,
                                       context.group);
      !done)
    return done.error();
  // `hidden` is dead from here on, so the layer's output may take its place.
  const bool leaves = ordinal + 1 == layers.size() && boundary_;
  const auto out =
    leaves ? tensor(boundary_.as<float>().data(), rows, spec_.shape.hidden) : scratch_.hidden(rows);
  layer.mlp_norm.forward(middle, normed);
  if (auto done = layer.feed_forward.forward(normed, middle, out, scratch_, context.group); !done)
    return done.error();
  return out;
}

std::vector<bool> decoder_body::find_finite(tensor x) {
  const auto flags = std::make_unique<bool[]>(x.rows);
  where_.find_finite(x, {flags.get(), x.rows});
  where_.synchronise();
  return std::vector<bool>(flags.get(), flags.get() + x.rows);
}

result<partition_output>
decoder_body::finish_partition(tensor hidden, forward_context& context, bool owns_output) {
  if (owns_output)
    return finish_final(hidden, context);
  boundary_output out{.hidden = std::move(boundary_), .finite = find_finite(hidden)};
  boundary_ = {};
  return partition_output(std::move(out));
}

/// The last row of each sequence that wants output, one after the other. Rows that lie side by
/// side, as they all do when every sequence decodes, are done in one go.
void decoder_body::normalise_output_rows(tensor hidden, const batch& rows, tensor out) {
  std::size_t done = 0;
  range run;
  const auto flush = [&] {
    if (run.empty())
      return;
    ends.final_norm->forward({hidden.row(run.begin), run.size(), hidden.columns},
                             {out.row(done), run.size(), out.columns});
    done += run.size();
  };
  for (const auto& sequence : rows.sequences) {
    if (!sequence.wants_output)
      continue;
    const std::size_t last = sequence.first_row + sequence.count - 1;
    if (run.empty() || run.end != last) {
      flush();
      run = {last, last};
    }
    ++run.end;
  }
  flush();
}

/// How many candidates each row that wants output asks for; 0: whole logits. A group of one has
/// them anyway.
std::vector<std::uint32_t> wanted_candidates(const batch& rows, std::size_t members) {
  std::vector<std::uint32_t> wanted;
  for (const auto& sequence : rows.sequences)
    if (sequence.wants_output)
      wanted.push_back(members > 1 ? sequence.candidates : 0);
  return wanted;
}

std::vector<bool> decoder_body::find_finite(const final_output& out, tensor normed, tensor logits) {
  auto finite = find_finite(normed);
  const auto whole = logits.rows > 0 ? find_finite(logits) : std::vector<bool>{};
  auto next = whole.begin();
  const auto is_finite = [](float logit) { return std::isfinite(logit); };
  for (std::size_t row = 0; row < finite.size(); ++row) {
    const auto& best = out.candidates[row].logits;
    const bool all = best.empty() ? *next++ : std::all_of(best.begin(), best.end(), is_finite);
    finite[row] = finite[row] && all;
  }
  return finite;
}

result<partition_output> decoder_body::finish_final(tensor hidden, forward_context& context) {
  const auto wanted = wanted_candidates(context.rows, context.group.size());
  const auto whole = static_cast<std::size_t>(std::count(wanted.begin(), wanted.end(), 0u));
  final_output out;
  if (wanted.empty())
    return partition_output(std::move(out));
  const auto vocabulary = spec_.shape.vocabulary;
  if (whole > 0) {
    auto memory = where_.allocate(whole * vocabulary * sizeof(float));
    if (!memory)
      return memory.error();
    out.logits = *std::move(memory);
  }
  out.candidates.resize(wanted.size());
  const auto normed = scratch_.normed(wanted.size());
  normalise_output_rows(hidden, context.rows, normed);
  const tensor logits(out.logits.as<float>().data(), whole, vocabulary);
  if (auto done = ends.head->forward(normed, wanted, logits, out.candidates, context.group); !done)
    return done.error();
  out.finite = find_finite(out, normed, logits);
  return partition_output(std::move(out));
}

/// Loads one part after the other and remembers the first failure.
class body_builder {
public:
  body_builder(const decoder_spec& spec,
               const partition_record& record,
               const shard_ranges& ranges,
               shard_loader& loader,
               device& where)
    : spec_(spec), record_(record), ranges_(ranges), loader_(loader), where_(where) {}

  result<void> load_input(decoder_ends& ends) {
    if (!record_.owns_input)
      return {};
    std::shared_ptr<const matrix> lookups;
    if (record_.owns_output && spec_.shape.tied_head) {
      auto both = loader_.tied(decoder_names::embedding);
      if (!both)
        return both.error();
      lookups = std::move(both->lookups);
      tied_head_ = std::move(both->head);
    } else {
      auto table = loader_.table(decoder_names::embedding);
      if (!table)
        return table.error();
      lookups = *std::move(table);
    }
    const auto first = static_cast<token_id>(ranges_.vocabulary.begin);
    ends.embedding.emplace(where_, std::move(lookups), first);
    return {};
  }

  result<decoder_layer> load_layer(std::size_t layer) {
    const auto path = decoder_names::layer(layer);
    auto attention_norm = norm::load(loader_, where_, path + ".input_layernorm", spec_.norm_eps);
    if (!attention_norm)
      return attention_norm.error();
    auto attend = attention::load(
      loader_, where_, spec_, path + ".self_attn", layer, ranges_.heads, ranges_.kv_heads);
    if (!attend)
      return attend.error();
    auto mlp_norm = norm::load(loader_, where_, path + ".post_attention_layernorm", spec_.norm_eps);
    if (!mlp_norm)
      return mlp_norm.error();
    auto feed_forward = mlp::load(loader_, where_, spec_, path + ".mlp", ranges_.ffn.size());
    if (!feed_forward)
      return feed_forward.error();
    return decoder_layer{*std::move(attention_norm),
                         *std::move(attend),
                         *std::move(mlp_norm),
                         *std::move(feed_forward)};
  }

  result<void> load_output(decoder_ends& ends) {
    if (!record_.owns_output)
      return {};
    auto final_norm = norm::load(loader_, where_, decoder_names::final_norm_path, spec_.norm_eps);
    if (!final_norm)
      return final_norm.error();
    ends.final_norm = *std::move(final_norm);
    auto head = tied_head_;
    if (!head) {
      auto rows =
        loader_.packed(spec_.shape.tied_head ? decoder_names::embedding : decoder_names::head);
      if (!rows)
        return rows.error();
      head = *std::move(rows);
    }
    ends.head.emplace(where_, std::move(head), spec_.shape.vocabulary);
    return {};
  }

private:
  const decoder_spec& spec_;
  const partition_record& record_;
  const shard_ranges& ranges_;
  shard_loader& loader_;
  device& where_;
  std::shared_ptr<const matrix> tied_head_; // loaded with the embedding
};

} // namespace

result<std::unique_ptr<partition_body>> load_decoder_body(const decoder_spec& spec,
                                                          const partition_record& record,
                                                          shard_loader& loader,
                                                          device& where) {
  auto ranges = plan_shard(spec.shape, record.tensor_rank, record.tensor_size);
  if (!ranges)
    return ranges.error();
  const workspace_widths widths{.hidden = spec.shape.hidden,
                                .queries = ranges->heads.size() * spec.shape.head_dim,
                                .keys = ranges->kv_heads.size() * spec.shape.head_dim,
                                .ffn = ranges->ffn.size()};
  auto body = std::make_unique<decoder_body>(spec, widths, where);
  body_builder builder(spec, record, *ranges, loader, where);
  if (auto done = builder.load_input(body->ends); !done)
    return done.error();
  for (auto layer = record.units.begin; layer < record.units.end; ++layer) {
    auto loaded = builder.load_layer(layer);
    if (!loaded)
      return loaded.error();
    body->layers.push_back(*std::move(loaded));
  }
  if (auto done = builder.load_output(body->ends); !done)
    return done.error();
  return std::unique_ptr<partition_body>(std::move(body));
}

} // namespace troupe::compute
