#include "compute/architectures/decoder.hpp"

#include "compute/architectures/decoder_body.hpp"
#include "compute/architectures/decoder_names.hpp"

#include <fmt/core.h>

#include <bit>

namespace troupe::compute {
namespace {

using axis = axis_cut::axis;

/// Collects the parameters of a decoder in the order in which they are used.
class parameter_list {
public:
  explicit parameter_list(const decoder_spec& spec) : spec_(spec) {}

  std::vector<parameter> take() && { return std::move(list_); }

  void add_embedding() {
    const auto& shape = spec_.shape;
    add(decoder_names::embedding,
        embedding_role,
        {shape.vocabulary, shape.hidden},
        {{axis::rows, dealt::vocabulary, 1}});
  }

  void add_layer(std::size_t layer) {
    place_ = unit_place{std::string(decoder_group), layer};
    const auto& shape = spec_.shape;
    const axis_cut query{axis::rows, dealt::heads, shape.head_dim};
    const axis_cut key_value{axis::rows, dealt::kv_heads, shape.head_dim};
    const axis_cut ffn{axis::rows, dealt::ffn, 1};
    add_in_layer("input_layernorm", {shape.hidden}, {});
    add_linear("self_attn.q_proj", shape.heads * shape.head_dim, query, spec_.input_bias);
    add_linear("self_attn.k_proj", shape.kv_heads * shape.head_dim, key_value, spec_.input_bias);
    add_linear("self_attn.v_proj", shape.kv_heads * shape.head_dim, key_value, spec_.input_bias);
    if (spec_.head_norm) {
      add_in_layer("self_attn.q_norm", {shape.head_dim}, {});
      add_in_layer("self_attn.k_norm", {shape.head_dim}, {});
    }
    add_reducing("self_attn.o_proj", shape.heads * shape.head_dim, query, spec_.output_bias);
    add_in_layer("post_attention_layernorm", {shape.hidden}, {});
    add_linear("mlp.gate_proj", shape.ffn, ffn, spec_.mlp_bias);
    add_linear("mlp.up_proj", shape.ffn, ffn, spec_.mlp_bias);
    add_reducing("mlp.down_proj", shape.ffn, ffn, spec_.mlp_bias);
    place_.reset();
  }

  void add_output() {
    const auto& shape = spec_.shape;
    add(decoder_names::final_norm, final_norm_role, {shape.hidden}, {});
    if (!shape.tied_head)
      add(decoder_names::head,
          head_role,
          {shape.vocabulary, shape.hidden},
          {{axis::rows, dealt::vocabulary, 1}});
  }

private:
  void add(std::string name,
           std::string_view role,
           std::vector<std::size_t> shape,
           std::optional<axis_cut> cut) {
    list_.push_back({std::move(name), std::string(role), place_, std::move(shape), cut});
  }

  void add_in_layer(std::string_view part,
                    std::vector<std::size_t> shape,
                    std::optional<axis_cut> cut,
                    std::string_view kind = "weight") {
    const auto role = fmt::format("{}.{}", part, kind);
    add(decoder_names::in_layer(place_->unit, role), role, std::move(shape), cut);
  }

  /// Column-parallel: rows of the weight, and its bias, are cut.
  void add_linear(std::string_view part, std::size_t width, axis_cut cut, bool bias) {
    add_in_layer(part, {width, spec_.shape.hidden}, cut);
    cut.along = axis::columns;
    if (bias)
      add_in_layer(part, {width}, cut, "bias");
  }

  /// Row-parallel: columns of the weight are cut; the bias is whole, it is added after the sum.
  void add_reducing(std::string_view part, std::size_t width, axis_cut cut, bool bias) {
    cut.along = axis::columns;
    add_in_layer(part, {spec_.shape.hidden, width}, cut);
    if (bias)
      add_in_layer(part, {spec_.shape.hidden}, {}, "bias");
  }

  const decoder_spec& spec_;
  std::vector<parameter> list_;
  std::optional<unit_place> place_;
};

class decoder final : public architecture {
public:
  explicit decoder(decoder_spec spec) : spec_(std::move(spec)) {
    graph_group group{.name = std::string(decoder_group)};
    for (std::size_t layer = 0; layer < spec_.shape.layers; ++layer)
      group.unit_paths.push_back(decoder_names::layer(layer));
    layout_ = {.primary = group.name, .groups = {group}};
    parameter_list list(spec_);
    list.add_embedding();
    for (std::size_t layer = 0; layer < spec_.shape.layers; ++layer)
      list.add_layer(layer);
    list.add_output();
    parameters_ = std::move(list).take();
    const auto& shape = spec_.shape;
    boundary_.identity = fmt::format("{}/hidden{}/layers{}/heads{}x{}/vocab{}",
                                     shape.family,
                                     shape.hidden,
                                     shape.layers,
                                     shape.heads,
                                     shape.head_dim,
                                     shape.vocabulary);
    boundary_.primary = {
      "hidden", dtype::f32, {{dimension::kind::rows, 0}, {dimension::kind::fixed, shape.hidden}}};
  }

  const model_shape& shape() const override { return spec_.shape; }

  const graph& layout() const override { return layout_; }

  const std::vector<parameter>& parameters() const override { return parameters_; }

  const boundary_schema& boundary() const override { return boundary_; }

  ownership owned_by(const partition_record& record) const override {
    ownership owned{.groups = {{std::string(decoder_group), record.units}}};
    if (record.owns_input)
      owned.owned_roles.emplace_back(embedding_role);
    if (record.owns_output) {
      owned.owned_roles.emplace_back(final_norm_role);
      owned.owned_roles.emplace_back(head_role);
      if (spec_.shape.tied_head && !record.owns_input)
        owned.stored_roles.emplace_back(embedding_role);
    }
    return owned;
  }

  state_plan state(std::size_t local_kv_heads) const override {
    state_plan plan;
    for (std::size_t layer = 0; layer < spec_.shape.layers; ++layer)
      plan.layout.push_back({fmt::format("layer.{}.kv", layer),
                             local_kv_heads,
                             spec_.shape.head_dim,
                             spec_.windows[layer]});
    plan.rules.push_back(
      {std::string(decoder_group), state_rule::kind::unit_aligned, {0, plan.layout.size()}});
    return plan;
  }

  holding held_as(const parameter& which, const partition_record& record) const override {
    if (which.shape.size() == 1)
      return holding::vector;
    const bool only_lookups =
      which.role == embedding_role && !(record.owns_output && spec_.shape.tied_head);
    return only_lookups ? holding::table : holding::packed;
  }

  bool is_known_extra(std::string_view name) const override {
    // Old exporters stored the frequencies; exporters of tied models may store the head as well.
    return name.ends_with(".rotary_emb.inv_freq")
           || (spec_.shape.tied_head && name == decoder_names::head);
  }

  void describe_to(digest_stream& digest) const override {
    const auto& shape = spec_.shape;
    digest.add_text(boundary_.identity);
    for (const auto number : {shape.layers,
                              shape.hidden,
                              shape.heads,
                              shape.kv_heads,
                              shape.head_dim,
                              shape.ffn,
                              shape.vocabulary,
                              shape.context,
                              std::size_t{shape.tied_head},
                              std::size_t{spec_.input_bias},
                              std::size_t{spec_.output_bias},
                              std::size_t{spec_.mlp_bias},
                              std::size_t{spec_.head_norm},
                              std::size_t{std::bit_cast<std::uint32_t>(spec_.norm_eps)},
                              std::size_t{std::bit_cast<std::uint32_t>(spec_.rope.magnitude)}})
      digest.add_number(number);
    for (const auto window : spec_.windows)
      digest.add_number(window);
    for (const auto frequency : spec_.rope.inverse_frequencies)
      digest.add_number(std::bit_cast<std::uint32_t>(frequency));
  }

  result<std::unique_ptr<partition_body>>
  load(const partition_record& record, shard_loader& loader, device& where) const override {
    return load_decoder_body(spec_, record, loader, where);
  }

private:
  decoder_spec spec_;
  graph layout_;
  std::vector<parameter> parameters_;
  boundary_schema boundary_;
};

} // namespace

result<std::unique_ptr<const architecture>> make_decoder(decoder_spec spec) {
  auto made = std::make_unique<const decoder>(std::move(spec));
  if (auto sound = check_graph(made->layout()); !sound)
    return sound.error();
  if (auto sound = check_parameters(made->layout(), made->parameters()); !sound)
    return sound.error();
  if (auto sound = check_state_plan(made->layout(), made->state(made->shape().kv_heads)); !sound)
    return sound.error();
  if (auto sound = made->boundary().validate(); !sound)
    return sound.error();
  return std::unique_ptr<const architecture>(std::move(made));
}

} // namespace troupe::compute
