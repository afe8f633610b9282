// A pass through a rank: step -> rows -> begin, enter -> units -> leave -> finish, send. Each part
// is one message of the rank to itself, so that fences and questions get their turn in between.

#include "actors/rank/rank_state.hpp"
#include "actors/sampling.hpp"
#include "compute/sampler.hpp"
#include "compute/weights/convert.hpp"

#include <fmt/core.h>

#include <xxhash.h>

#include <algorithm>

namespace troupe::actors {

namespace {

std::uint64_t nanoseconds(std::chrono::steady_clock::duration span) {
  return static_cast<std::uint64_t>(
    std::chrono::duration_cast<std::chrono::nanoseconds>(span).count());
}

std::uint64_t schema_hash(const compute::boundary_schema& schema) {
  return XXH3_64bits(schema.identity.data(), schema.identity.size());
}

} // namespace

void rank_state::release(const std::vector<slot_id>& slots) {
  for (const auto slot : slots)
    slots_.erase(slot);
}

void rank_state::take(const trace_order& order) {
  trace_.start(order);
  report_trace();
}

void rank_state::report_trace() {
  auto part = trace_.take();
  if (!part)
    return;
  part->rank = setup.rank;
  part->stage = assignment_.stage;
  self_->send(setup.node, std::move(*part));
}

void rank_state::tell_request(const step_plan& plan, const step_entry& entry) const {
  log::debug("rank {} epoch {} step {} request {} '{}' has slot {} from position {} on",
             number(setup.rank),
             number(epoch_),
             number(plan.step),
             number(entry.request),
             entry.label,
             number(entry.slot),
             entry.position);
}

/// What the request asks of the sampler. It is told again in a new epoch: a token that was chosen
/// and never committed is no part of the answer.
result<void> rank_state::take_rules(live_slot& slot, const step_entry& entry) const {
  slot.rules.reset();
  if (entry.rules.empty() || !publishes())
    return {}; // rule 33: nobody else looks at logits
  auto rules = slot_rules::make(entry.rules.front(), *setup.grammars);
  if (!rules)
    return with_context(fmt::format("slot {}", number(entry.slot)), rules.error());
  slot.rules = std::move(*rules);
  return {};
}

/// The slot of an entry, introduced if the entry does so. What the state already holds stays: a
/// slot that is told of again in a new epoch goes on from there.
result<rank_state::live_slot*> rank_state::find_slot(const step_plan& plan,
                                                     const step_entry& entry) {
  for (const auto page : entry.pages)
    if (number(page) >= assignment_.pages)
      return error{
        errc::contract_violation,
        fmt::format(
          "step {} names page {} of {}", number(plan.step), number(page), assignment_.pages)};
  if (!entry.pages.empty()) {
    auto& told = slots_[entry.slot];
    if (told.pages != entry.pages)
      told = live_slot{entry.pages, 0, {}, nullptr};
    tell_request(plan, entry);
    if (!plan.replay())
      if (auto taken = take_rules(told, entry); !taken)
        return taken.error();
  }
  const auto found = slots_.find(entry.slot);
  if (found == slots_.end())
    return error{errc::contract_violation,
                 fmt::format("step {} names slot {}, which was never introduced",
                             number(plan.step),
                             number(entry.slot))};
  auto& slot = found->second;
  if (entry.count == 0 || entry.position > std::max(slot.length, slot.begun))
    return error{
      errc::contract_violation,
      fmt::format("step {} brings {} tokens of slot {} at position {}, but {} are in the state",
                  number(plan.step),
                  entry.count,
                  number(entry.slot),
                  entry.position,
                  slot.length)};
  return &slot;
}

result<compute::batch> rank_state::make_batch(const step_plan& plan) {
  compute::batch rows;
  std::uint32_t row = 0;
  for (const auto& entry : plan.entries) {
    const auto slot = find_slot(plan, entry);
    if (!slot)
      return slot.error();
    compute::sequence_rows part;
    part.pages = (*slot)->pages;
    part.first_row = row;
    part.position = entry.position;
    part.count = entry.count;
    part.wants_output = entry.has(step_entry::wants_output);
    part.candidates = entry.candidates;
    if (entry.candidates > 0 && (entry.has(step_entry::wants_digest) || (*slot)->rules))
      return error{
        errc::contract_violation,
        fmt::format("step {} asks for {} candidates of slot {}, which needs whole logits",
                    number(plan.step),
                    entry.candidates,
                    number(entry.slot))};
    row += entry.count;
    rows.sequences.push_back(std::move(part));
  }
  return rows;
}

void rank_state::begin_with_tokens(const step_tokens& message) {
  step_ = message.plan;
  if (message.tokens.size() != step_.rows()) {
    give_up(rank_input::pass_failed,
            {errc::contract_violation,
             fmt::format("step {} has {} rows but brings {} tokens",
                         number(step_.step),
                         step_.rows(),
                         message.tokens.size())});
    return;
  }
  begin(compute::token_input{message.tokens});
}

void rank_state::expect_rows(const step_rows& message) {
  step_ = message.plan;
}

result<compute::buffer> rank_state::from_wire(const partition_input& message,
                                              const compute::buffer& tensor) {
  const auto& schema = setup.model->boundary();
  const auto type = static_cast<dtype>(message.type);
  if (message.step != step_.step)
    return error{errc::contract_violation,
                 fmt::format("the rows of step {} arrived where those of step {} were due",
                             number(message.step),
                             number(step_.step))};
  if (type != setup.wire)
    return error{errc::mismatch,
                 fmt::format("a boundary in {} arrived where {} was agreed on",
                             to_string(type),
                             to_string(setup.wire))};
  const compute::offered_tensor offered{
    schema.primary.role, schema.primary.type, {message.rows, message.columns}};
  const auto identity = message.schema == schema_hash(schema) ? std::string_view{schema.identity}
                                                              : std::string_view{"another schema"};
  if (auto admitted =
        compute::admit_boundary(schema, identity, {&offered, 1}, message.rows, setup.max_rows);
      !admitted)
    return admitted.error();
  if (message.rows != step_.rows())
    return error{
      errc::contract_violation,
      fmt::format(
        "step {} has {} rows, its boundary {}", number(step_.step), step_.rows(), message.rows)};
  const auto elements = std::size_t{message.rows} * message.columns;
  if (tensor.size() != elements * size_of(type))
    return error{errc::contract_violation,
                 fmt::format("a boundary of {} x {} {} has {} bytes",
                             message.rows,
                             message.columns,
                             to_string(type),
                             tensor.size())};
  if (type == dtype::f32)
    return tensor;
  auto wide = compute::buffer::allocate(elements * sizeof(float));
  if (!wide)
    return wide.error();
  compute::convert_to_f32(tensor.data(), type, wide->as<float>());
  return std::move(*wide);
}

result<compute::buffer> rank_state::to_wire(const compute::buffer& hidden) const {
  if (setup.wire == dtype::f32)
    return hidden;
  const auto values = hidden.as<float>();
  auto narrow = compute::buffer::allocate(values.size() * size_of(setup.wire));
  if (!narrow)
    return narrow.error();
  auto out = narrow->as<std::uint16_t>();
  for (std::size_t i = 0; i < values.size(); ++i)
    out[i] = static_cast<std::uint16_t>(compute::convert_from_f32(values[i], setup.wire));
  return std::move(*narrow);
}

void rank_state::begin_with_rows(const partition_input& message, const compute::buffer& tensor) {
  auto hidden = from_wire(message, tensor);
  if (!hidden) {
    give_up(rank_input::pass_failed, hidden.error());
    return;
  }
  begin(compute::hidden_input{std::move(*hidden)});
}

void rank_state::begin(const compute::partition_input& input) {
  if (auto* injector = faults())
    injector->begin_step();
  pass_begin_ = clock::now();
  collective_ns_before_ = setup.board->collective_ns.load(std::memory_order_relaxed);
  rank_board::add(setup.board->wait_ns, nanoseconds(pass_begin_ - pass_end_));
  rank_board::set(setup.board->step, number(step_.step));
  trace_.begin(step_, pass_begin_);
  setup.last_deeds->set_place(epoch_, step_.step);
  setup.last_deeds->note({recorded::step, 0, 0, 0, step_.rows()});
  release(step_.released);
  auto rows = make_batch(step_);
  if (!rows) {
    give_up(rank_input::pass_failed, rows.error());
    return;
  }
  constexpr std::size_t first_local_ordinal = 0;
  auto begun = partition_->begin(input, std::move(*rows), state_, first_local_ordinal);
  if (begun)
    begun = partition_->enter();
  if (!begun) {
    give_up(rank_input::pass_failed, begun.error());
    return;
  }
  compute_ns_ = nanoseconds(clock::now() - pass_begin_);
  self_->send(rank_actor{self_}, unit_due{step_.step});
}

void rank_state::run_unit() {
  const auto unit = partition_->next_unit();
  if (!unit) {
    self_->send(rank_actor{self_}, group_leave{step_.step});
    return;
  }
  setup.last_deeds->note({recorded::layer, 0, 0, *unit, 0});
  if (*unit + 1 == assignment_.last_unit)
    for (const auto& entry : step_.entries)
      slots_.at(entry.slot).begun = entry.position + entry.count;
  auto* injector = faults();
  if (injector)
    injector->begin_layer(*unit);
  const auto begin = clock::now();
  if (auto ran = partition_->forward_unit(*unit); !ran) {
    give_up(rank_input::pass_failed, ran.error());
    return;
  }
  if (injector)
    injector->end_layer(clock::now() - begin);
  const auto end = clock::now();
  compute_ns_ += nanoseconds(end - begin);
  trace_.add(trace_kind::layer, begin, end, *unit);
  if (partition_->next_unit())
    self_->send(rank_actor{self_}, unit_due{step_.step});
  else
    self_->send(rank_actor{self_}, group_leave{step_.step});
}

void rank_state::leave_group() {
  if (auto left = partition_->leave(); !left) {
    give_up(rank_input::pass_failed, left.error());
    return;
  }
  self_->send(rank_actor{self_}, pass_finish{step_.step});
}

void rank_state::finish_pass() {
  const auto begin = clock::now();
  auto output = partition_->finish(partition_->record().owns_output);
  if (!output) {
    give_up(rank_input::pass_failed, output.error());
    return;
  }
  compute_ns_ += nanoseconds(clock::now() - begin);
  for (const auto& entry : step_.entries) {
    auto& length = slots_.at(entry.slot).length;
    const auto end = entry.position + entry.count;
    length = step_.replay() ? std::max(length, end) : end;
  }
  if (auto* boundary = std::get_if<compute::boundary_output>(&*output))
    publish_boundary(*boundary);
  else if (step_.replay())
    end_replay();
  else
    send_choices(std::get<compute::final_output>(*output));
  trace_.add(trace_kind::finish, begin, clock::now(), 0);
  count_pass();
}

void rank_state::publish_boundary(const compute::boundary_output& output) {
  auto payload = to_wire(output.hidden);
  if (!payload) {
    give_up(rank_input::pass_failed, payload.error());
    return;
  }
  keep(*payload);
  if (step_.replay() && assignment_.stage + 1 == step_.last_stage)
    end_replay();
  else
    send_boundary(step_, std::move(*payload));
}

void rank_state::send_boundary(const step_plan& plan, compute::buffer payload) {
  partition_input message;
  message.epoch = epoch_;
  message.step = plan.step;
  message.rows = plan.rows();
  message.columns = static_cast<std::uint32_t>(setup.model->shape().hidden);
  message.type = static_cast<std::uint8_t>(setup.wire);
  message.schema = schema_hash(setup.model->boundary());
  rank_board::add(setup.board->boundary_frames, 1);
  rank_board::add(setup.board->boundary_bytes, payload.size() + transport::wire_header_bytes);
  note_frame(message_kind::partition_input,
             number(neighbour(assignment_.stage + 1, assignment_.tensor)),
             payload.size());
  const auto begin = clock::now();
  const auto bytes = payload.size();
  self_->send(*next_, message, std::move(payload));
  count_send(begin, bytes);
}

// -- replays --------------------------------------------------------------------------------------

void rank_state::keep(const compute::buffer& payload) {
  if (!kept_)
    return;
  const auto row_bytes = payload.size() / step_.rows();
  const std::byte* rows = payload.data();
  for (const auto& entry : step_.entries) {
    auto& slot = slots_.at(entry.slot);
    kept_->keep(slot.pages, entry.position, {rows, entry.count * row_bytes});
    slot.rows = join_rows(slot.rows, {entry.position, entry.position + entry.count});
    rows += entry.count * row_bytes;
  }
}

result<compute::buffer> rank_state::read_kept(const step_plan& plan) {
  if (!kept_)
    return error{
      errc::contract_violation,
      fmt::format("step {} wants rows again that this rank does not keep", number(plan.step))};
  const auto row_bytes = setup.model->shape().hidden * size_of(setup.wire);
  auto payload = compute::buffer::allocate(plan.rows() * row_bytes);
  if (!payload)
    return payload.error();
  std::byte* rows = payload->data();
  for (const auto& entry : plan.entries) {
    const auto slot = find_slot(plan, entry);
    if (!slot)
      return slot.error();
    if (entry.position + entry.count > (*slot)->length)
      return error{errc::contract_violation,
                   fmt::format("step {} wants rows up to {} of slot {} again, but {} were sent",
                               number(plan.step),
                               entry.position + entry.count,
                               number(entry.slot),
                               (*slot)->length)};
    kept_->read((*slot)->pages, entry.position, {rows, entry.count * row_bytes});
    rows += entry.count * row_bytes;
  }
  return payload;
}

/// The next stage lost its state: it gets the rows that it had, and nothing is computed here.
void rank_state::send_again(const step_plan& plan) {
  auto payload = read_kept(plan);
  if (!payload) {
    give_up(rank_input::pass_failed, payload.error());
    return;
  }
  rank_board::add(setup.board->rows_resent, plan.rows());
  send_boundary(plan, std::move(*payload));
}

/// The last stage of a replay votes for all of them, as the last stage of a step does.
void rank_state::end_replay() {
  if (assignment_.tensor == 0)
    self_->send(*conductor_, step_output{epoch_, step_.step, {}});
}

// -- choices --------------------------------------------------------------------------------------

token_choice rank_state::choose(const step_entry& entry,
                                std::span<float> logits,
                                const compute::token_candidates& candidates,
                                bool finite) {
  token_choice made;
  made.slot = entry.slot;
  if (entry.has(step_entry::wants_digest))
    made.digest = XXH3_64bits(logits.data(), logits.size_bytes());
  auto chosen = [&]() -> result<compute::choice> {
    if (!finite)
      return error{errc::compute_error, "the logits are not finite numbers"};
    auto wish = to_sampling(entry.sampling);
    wish.with_logprob = entry.has(step_entry::wants_logprob);
    const auto position = entry.position + entry.count;
    if (!candidates.empty())
      return compute::sample(candidates, wish, position);
    const auto& rules = slots_.at(entry.slot).rules;
    if (!rules)
      return compute::sample(logits, wish, entry.history, position);
    return rules->choose(logits, wish, entry.history, position);
  }();
  if (!chosen) {
    log::warn("rank {} epoch {} step {} slot {}: {}",
              number(setup.rank),
              number(epoch_),
              number(step_.step),
              number(entry.slot),
              chosen.error().what);
    made.code = static_cast<std::uint8_t>(static_cast<std::uint8_t>(chosen.error().code) + 1);
    return made;
  }
  made.token = chosen->token;
  made.logprob = chosen->logprob;
  for (const auto& [token, logprob] : chosen->top)
    made.top.push_back({token, logprob});
  return made;
}

void rank_state::send_choices(compute::final_output& output) {
  if (!publishes())
    return; // rule 33: one rank of the stage publishes
  step_output message;
  message.epoch = epoch_;
  message.step = step_.step;
  const auto vocabulary = setup.model->shape().vocabulary;
  auto left = output.logits.as<float>();
  std::size_t row = 0;
  for (const auto& entry : step_.entries) {
    if (!entry.has(step_entry::wants_output))
      continue;
    const auto& candidates = output.candidates[row];
    const auto logits = left.first(candidates.empty() ? vocabulary : 0);
    left = left.subspan(logits.size());
    message.choices.push_back(choose(entry, logits, candidates, output.finite[row]));
    ++row;
  }
  note_frame(message_kind::step_output, transport::conductor_key, message.choices.size());
  const auto begin = clock::now();
  self_->send(*conductor_, std::move(message));
  count_send(begin, 0);
}

void rank_state::count_send(clock::time_point begin, std::uint64_t bytes) {
  const auto end = clock::now();
  rank_board::add(setup.board->send_ns, nanoseconds(end - begin));
  trace_.add(trace_kind::send, begin, end, bytes);
}

void rank_state::count_pass() {
  auto& board = *setup.board;
  pass_end_ = clock::now();
  trace_.end(step_.step, pass_end_);
  report_trace();
  rank_board::add(board.steps, 1);
  rank_board::add(board.rows, step_.rows());
  if (step_.replay())
    rank_board::add(board.rows_replayed, step_.rows());
  const auto reduced = board.collective_ns.load(std::memory_order_relaxed) - collective_ns_before_;
  rank_board::add(board.compute_ns, compute_ns_ - std::min(compute_ns_, reduced));
}

} // namespace troupe::actors
