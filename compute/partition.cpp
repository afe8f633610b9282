#include "compute/partition.hpp"

#include "compute/architectures/architecture.hpp"
#include "compute/pass_checks.hpp"
#include "compute/weights/shard_loader.hpp"

#include <fmt/core.h>

namespace troupe::compute {
namespace {

/// Where a pass stands. Rule 30: each call has one phase in which it is legal.
enum class pass_phase : std::uint8_t { idle, begun, in_group, left, failed };

std::string_view to_string(pass_phase phase) {
  switch (phase) {
  case pass_phase::idle: return "no pass has begun";
  case pass_phase::begun: return "the pass has begun, but has not entered its group";
  case pass_phase::in_group: return "the pass is in its group";
  case pass_phase::left: return "the pass has left its group";
  case pass_phase::failed: return "the pass has failed and waits to be abandoned";
  }
  return "unknown";
}

/// Everything of one pass. The context refers to the batch beside it.
struct running_pass {
  running_pass(partition_input given, batch of, partition_state& state, collective& group)
    : input(std::move(given)), rows(std::move(of)), context{rows, state, group} {}

  running_pass(const running_pass&) = delete;
  running_pass& operator=(const running_pass&) = delete;

  partition_input input; // keeps a hidden buffer alive that the first unit reads
  batch rows;
  forward_context context;
  tensor hidden;
  std::size_t next_unit = 0; // global
};

class loaded_partition final : public partition {
public:
  loaded_partition(std::shared_ptr<const model> source,
                   const partition_record& record,
                   device& where,
                   collective& group,
                   state_layout expected)
    : source_(std::move(source)), record_(record), where_(where), group_(&group),
      expected_(std::move(expected)) {}

  std::unique_ptr<partition_body> body;
  load_report loaded;
  held_weights held;

  const partition_record& record() const override { return record_; }

  const load_report& report() const override { return loaded; }

  const held_weights& weights() const override { return held; }

  void use_group(collective& group) override {
    check(phase_ == pass_phase::idle, "a group is replaced between passes");
    check(group.size() == record_.tensor_size && group.rank() == record_.tensor_rank,
          "a group is replaced by one of the same shape");
    group_ = &group;
  }

  const state_layout& expected_state() const override { return expected_; }

  result<partition_state> make_state(std::size_t pages) override;
  result<void> begin(const partition_input& input,
                     batch rows,
                     partition_state& state,
                     std::size_t first_state_ordinal) override;
  result<void> enter() override;
  std::optional<std::size_t> next_unit() const override;
  result<void> forward_unit(std::size_t unit) override;
  result<void> leave() override;
  result<partition_output> finish(bool owns_output) override;

  void abandon() noexcept override {
    pass_.reset();
    phase_ = pass_phase::idle;
  }

private:
  result<void> expect(pass_phase wanted, std::string_view call) const;

  /// Takes a hidden value of the body into the pass, or marks the pass as failed.
  result<void> advance(result<tensor> hidden, pass_phase next);

  std::shared_ptr<const model> source_;
  partition_record record_;
  device& where_;
  collective* group_;
  state_layout expected_;
  pass_phase phase_ = pass_phase::idle;
  std::optional<running_pass> pass_;
};

result<partition_state> loaded_partition::make_state(std::size_t pages) {
  const auto& segment = expected_.segments.front();
  auto cache = where_.make_kv_cache({.layers = expected_.segments.size(),
                                     .kv_heads = segment.kv_heads,
                                     .head_dim = segment.head_dim,
                                     .pages = pages,
                                     .held = segment.held});
  if (!cache)
    return cache.error();
  return partition_state{expected_, *std::move(cache)};
}

result<void> loaded_partition::expect(pass_phase wanted, std::string_view call) const {
  if (phase_ == wanted)
    return {};
  return error{errc::contract_violation,
               fmt::format("{} is out of order: {}", call, to_string(phase_))};
}

result<void> loaded_partition::advance(result<tensor> hidden, pass_phase next) {
  if (!hidden) {
    phase_ = pass_phase::failed;
    return hidden.error();
  }
  pass_->hidden = *hidden;
  phase_ = next;
  return {};
}

result<void> loaded_partition::begin(const partition_input& input,
                                     batch rows,
                                     partition_state& state,
                                     std::size_t first_state_ordinal) {
  if (auto idle = expect(pass_phase::idle, "begin"); !idle)
    return idle;
  const auto& shape = source_->shape();
  if (auto checked = check_rows(rows, shape.context); !checked)
    return checked;
  if (auto checked = check_input(input, rows.rows(), record_, shape); !checked)
    return checked;
  if (auto checked = check_state(state, expected_, first_state_ordinal); !checked)
    return checked;
  if (auto checked = check_pages(rows, *state.cache); !checked)
    return checked;
  pass_.emplace(input, std::move(rows), state, *group_);
  auto hidden = body->begin_partition(pass_->input, pass_->context);
  if (!hidden) {
    abandon();
    return hidden.error();
  }
  pass_->next_unit = record_.units.begin;
  return advance(std::move(hidden), pass_phase::begun);
}

result<void> loaded_partition::enter() {
  if (auto begun = expect(pass_phase::begun, "enter"); !begun)
    return begun;
  return advance(body->enter_group(pass_->hidden, pass_->context), pass_phase::in_group);
}

std::optional<std::size_t> loaded_partition::next_unit() const {
  if (phase_ != pass_phase::in_group || pass_->next_unit == record_.units.end)
    return std::nullopt;
  return pass_->next_unit;
}

result<void> loaded_partition::forward_unit(std::size_t unit) {
  if (auto inside = expect(pass_phase::in_group, "forward_unit"); !inside)
    return inside;
  if (!record_.units.contains(unit))
    return error{errc::contract_violation,
                 fmt::format("unit {} is not owned; this partition owns [{}, {})",
                             unit,
                             record_.units.begin,
                             record_.units.end)};
  if (unit != pass_->next_unit)
    return error{errc::contract_violation,
                 fmt::format("unit {} is out of order: units ascend, {}",
                             unit,
                             next_unit() ? fmt::format("{} is next", *next_unit())
                                         : std::string("all of them have run"))};
  ++pass_->next_unit;
  const auto ordinal = unit - expected_.first_unit;
  return advance(body->forward_unit(ordinal, pass_->hidden, pass_->context), pass_phase::in_group);
}

result<void> loaded_partition::leave() {
  if (auto inside = expect(pass_phase::in_group, "leave"); !inside)
    return inside;
  if (const auto missing = next_unit())
    return error{errc::contract_violation,
                 fmt::format("leave is out of order: unit {} has not run", *missing)};
  return advance(body->leave_group(pass_->hidden, pass_->context), pass_phase::left);
}

result<partition_output> loaded_partition::finish(bool owns_output) {
  if (auto left = expect(pass_phase::left, "finish"); !left)
    return left.error();
  if (owns_output != record_.owns_output)
    return error{errc::contract_violation,
                 fmt::format("finish was asked for {}, but this partition {} output",
                             owns_output ? "final logits" : "a boundary",
                             record_.owns_output ? "owns" : "does not own")};
  auto output = body->finish_partition(pass_->hidden, pass_->context, owns_output);
  if (!output) {
    phase_ = pass_phase::failed;
    return output.error();
  }
  abandon();
  return output;
}

result<state_layout> plan_state(const architecture& design,
                                const partition_record& record,
                                const shard_description& shard,
                                dtype held) {
  const auto owned = design.owned_by(record);
  auto layout = resolve_state(design.state(shard.kv_heads.size()), owned, record.owns_output);
  if (!layout)
    return layout.error();
  const auto& group = design.layout().primary;
  if (auto checked = check_group_driver(owned, group, record.units, *layout, true); !checked)
    return checked.error();
  for (auto& segment : (*layout)->segments)
    segment.held = held;
  return *std::move(*layout);
}

} // namespace

result<std::unique_ptr<partition>> partition::load(std::shared_ptr<const model> source,
                                                   const partition_record& record,
                                                   held_types hold,
                                                   device& where,
                                                   collective& group,
                                                   const load_progress& progress,
                                                   held_weights held) {
  auto shard = source->describe(record, hold);
  if (!shard)
    return shard.error();
  if (group.size() != record.tensor_size || group.rank() != record.tensor_rank)
    return error{errc::mismatch,
                 fmt::format("the partition is for rank {} of a tensor-parallel group of {}, but "
                             "the group given is rank {} of {}",
                             record.tensor_rank,
                             record.tensor_size,
                             group.rank(),
                             group.size())};
  auto expected = plan_state(source->design(), record, *shard, hold.state);
  if (!expected)
    return expected.error();
  held.keep_only(*shard);
  shard_loader loader(*source, *shard, hold.weights, where, progress, std::move(held));
  auto body = source->design().load(record, loader, where);
  if (!body)
    return body.error();
  auto made = std::make_unique<loaded_partition>(
    std::move(source), record, where, group, *std::move(expected));
  made->body = *std::move(body);
  made->loaded = loader.report();
  made->held = loader.take_weights();
  return std::unique_ptr<partition>(std::move(made));
}

} // namespace troupe::compute
