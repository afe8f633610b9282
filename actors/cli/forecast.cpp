#include "actors/cli/forecast.hpp"

#include "actors/cli/command.hpp"
#include "actors/cli/progress.hpp"
#include "actors/cli/version.hpp"

#include <algorithm>

namespace troupe::cli {

result<std::optional<actors::calibration>> figures_of_this_host(dtype hold, bool measure) {
  const auto key = actors::key_of_this_host(hold, version_text());
  const auto folder = actors::cache_folder();
  if (!measure)
    return actors::find_calibration(folder, key);
  progress_line progress(false);
  progress.show("measuring this host, about two seconds");
  auto found = actors::measure_here(key);
  progress.clear();
  if (!found)
    return with_context("measuring this host", found.error());
  if (auto kept = actors::keep_calibration(folder, key, *found); !kept)
    warn(kept.error().what);
  return std::optional{*std::move(found)};
}

result<std::optional<actors::forecast>>
forecast_plan(const cluster_settings& settings, const plan_report& report, bool measure) {
  const auto figures = figures_of_this_host(report.plan.hold, measure);
  if (!figures)
    return figures.error();
  if (!*figures || !report.fits())
    return std::optional<actors::forecast>();
  auto made = actors::forecast_rates(
    actors::cluster_like_this_host(settings, report.plan, report.shape, **figures));
  if (!made)
    return made.error();
  made->weights_per_s = actors::weights_per_s((*figures)->speed, report.plan.hold);
  made->cores = (*figures)->speed.cores;
  return std::optional{*made};
}

std::optional<actors::simulated_run> forecast_run(const cluster_settings& settings,
                                                  const std::vector<actors::text_answer>& answers) {
  std::vector<actors::simulated_request> wanted;
  for (const auto& answer : answers)
    if (answer.prompt_tokens > 0 && !answer.tokens.empty()) {
      actors::simulated_request one;
      one.prompt = answer.prompt_tokens;
      one.answer = answer.tokens.size();
      wanted.push_back(one);
    }
  const auto report = make_plan_report(settings);
  if (wanted.size() != answers.size() || !report || !report->fits())
    return std::nullopt;
  const auto figures = figures_of_this_host(report->plan.hold, false);
  if (!figures || !*figures)
    return std::nullopt;
  const auto cluster =
    actors::cluster_like_this_host(settings, report->plan, report->shape, **figures);
  auto run = actors::simulate(cluster, wanted, wanted.size());
  return run ? std::optional{*std::move(run)} : std::nullopt;
}

} // namespace troupe::cli
