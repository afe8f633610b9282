#include "actors/cli/plan.hpp"

#include "actors/cli/command.hpp"
#include "actors/cli/forecast.hpp"
#include "actors/cli/plan_report.hpp"

#include <fmt/format.h>

namespace troupe::cli {

int run_plan_command(const plan_options& options) {
  if (!options.scenario.empty())
    return run_simulation(options);
  // A desk that holds no secrets can plan a cluster.
  const auto settings = read_cluster(options.cluster, security_files::ignore);
  if (!settings)
    return fail(settings.error());
  auto report = make_plan_report(*settings);
  if (!report)
    return fail(report.error());
  auto speed = forecast_plan(*settings, *report, options.calibrate);
  if (!speed)
    return fail(speed.error());
  report->speed = *speed;
  fmt::print("{}", options.json ? plan_json(*report) + "\n" : plan_text(*report));
  if (!options.svg.empty())
    if (auto written = write_file(options.svg, plan_svg(*report)); !written)
      return fail(written.error());
  for (const auto& warning : plan_warnings(*report))
    warn(warning);
  if (!report->missing.empty())
    return fail({errc::not_found, report->missing});
  return report->fits() ? 0 : fail({errc::out_of_memory, report->refusal});
}

} // namespace troupe::cli
