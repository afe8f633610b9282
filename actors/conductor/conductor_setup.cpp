// prepare_conductor (actors/conductor/conductor.hpp): what follows from settings, plan and model.
#include "actors/conductor/conductor.hpp"

#include "compute/model.hpp"
#include "compute/tokenizer/tokenizer.hpp"

#include <fmt/core.h>

namespace troupe::actors {

using milliseconds = std::chrono::milliseconds;

result<conductor_setup> prepare_conductor(const cluster_settings& settings,
                                          const cluster_plan& plan,
                                          const compute::model& model,
                                          std::shared_ptr<const compute::tokenizer> words) {
  conductor_setup made;
  auto& limits = made.limits;
  limits.context = plan.context;
  limits.max_sequences = plan.max_sequences;
  limits.max_queue = settings.schedule.queue;
  limits.max_rows = plan.max_rows;
  limits.prefill_chunk = settings.schedule.prefill_chunk;
  made.one_step_a_stage = settings.schedule.micro_batches == 0;
  limits.micro_batches =
    made.one_step_a_stage ? plan.sizes.pipeline : settings.schedule.micro_batches;
  limits.pages = plan.pages;
  limits.stages = plan.sizes.pipeline;
  limits.keeps_boundaries = settings.recovery.keep_boundaries;
  if (settings.parallel.wire_dtype == dtype::f16 && plan.sizes.pipeline > 1)
    made.remedy = "; between stages it may be at most 65504 (parallel.wire_dtype = \"f16\"), and "
                  "would fit with \"f32\" or \"bf16\"";
  made.end_tokens = model.end_tokens();
  made.vocabulary = model.shape().vocabulary;
  made.max_prompt_tokens = settings.limits.max_prompt_tokens;
  made.max_new_tokens = settings.limits.max_new_tokens;
  made.step_deadline = milliseconds{settings.deadlines.step_ms};
  made.connect_deadline = milliseconds{settings.deadlines.connect_ms};
  made.drain_deadline = milliseconds{settings.deadlines.drain_ms};
  made.request_deadline = milliseconds{settings.deadlines.request_ms};
  made.resume_deadline = milliseconds{settings.deadlines.join_ms};
  if (!settings.recovery.journal.empty()) {
    auto opened = journal::open(settings.recovery.journal,
                                fmt::format("protocol {}, model {}, tokenizer {}",
                                            protocol_version,
                                            compute::to_string(model.description_digest()),
                                            compute::to_string(words->digest())));
    if (!opened)
      return opened.error();
    made.journal = std::move(*opened);
  }
  made.words = std::move(words);
  return made;
}

} // namespace troupe::actors
