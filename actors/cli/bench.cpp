#include "actors/cli/bench.hpp"

#include "actors/cli/bench/bench_model.hpp"
#include "actors/cli/bench/bench_run.hpp"
#include "actors/cli/bench/compare.hpp"
#include "actors/cli/bench/processes.hpp"
#include "actors/cli/command.hpp"
#include "compute/model.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <optional>
#include <thread>

namespace troupe::cli {

namespace {

/// Those that need no model and take seconds.
const std::vector<std::string> quick_parts{"machine", "transport", "collectives", "boundary"};
const std::vector<std::string> model_parts{"machine", "model", "cluster"};

bool has_model(const bench_options& options) {
  return !options.folder.empty() || !options.shape.empty();
}

bool needs_model(const std::string& part) {
  return part == "model" || part == "cluster";
}

/// The parts to run, in their order.
result<std::vector<std::string>> chosen_parts(const bench_options& options) {
  const auto& known = bench_parts();
  for (const auto& part : options.only)
    if (std::find(known.begin(), known.end(), part) == known.end())
      return error{
        errc::invalid_argument,
        fmt::format("--only {}: no such part; {} would work", part, fmt::join(known, ", "))};
  auto wanted = has_model(options) ? model_parts : quick_parts;
  if (!options.only.empty())
    wanted = options.only;
  std::vector<std::string> chosen;
  for (const auto& part : known) {
    const bool named = std::find(wanted.begin(), wanted.end(), part) != wanted.end();
    if (options.all ? has_model(options) || !needs_model(part) : named)
      chosen.push_back(part);
  }
  for (const auto& part : chosen)
    if (needs_model(part) && !has_model(options))
      return error{errc::invalid_argument,
                   fmt::format("--only {} needs a model: a folder, or --shape 110M", part)};
  return chosen;
}

result<void> check_amounts(const bench_options& options) {
  if (options.prompt == 0 || options.steps == 0)
    return error{errc::invalid_argument,
                 fmt::format("a prompt of {} and {} more tokens; at least 1 each would work",
                             options.prompt,
                             options.steps)};
  if (options.seconds < 0 || options.seconds > 60 || options.repeats == 0)
    return error{errc::invalid_argument,
                 fmt::format("--seconds {} and --repeats {}; 0 to 60 and 1 or more would work",
                             options.seconds,
                             options.repeats)};
  return {};
}

/// What the model allows.
result<void> check_model(const bench_options& options, const compute::model_shape& shape) {
  if (options.prompt + options.steps < shape.context)
    return {};
  return error{errc::invalid_argument,
               fmt::format("a prompt of {} and {} more tokens; up to {} together would work",
                           options.prompt,
                           options.steps,
                           shape.context - 1)};
}

result<void> run_part(const std::string& part, bench_run& run, const std::filesystem::path& model) {
  if (part == "machine")
    return bench_machine(run);
  run.forget_probes(); // Some parts fork, and no other thread may run then.
  if (part == "transport")
    return bench_transport(run);
  if (part == "boundary")
    return bench_boundary(run);
  if (part == "kernels")
    return bench_kernels(run);
  if (part == "model")
    return bench_model(run, model);
  if (part == "cluster")
    return bench_clusters(run, model);
  if (auto two = bench_collectives(run, 2); !two)
    return two;
  const auto most = static_cast<unsigned>(process_board::most_processes);
  return std::thread::hardware_concurrency() >= most ? bench_collectives(run, most)
                                                     : result<void>{};
}

result<void>
note_model(const bench_options& options, const bench_model_folder& folder, bench_report& report) {
  const auto model = compute::model::open(folder.path());
  if (!model)
    return model.error();
  const auto& shape = (*model)->shape();
  const auto held = held_type(options, shape.stored);
  if (!held)
    return held.error();
  report.model = folder.name();
  report.held = to_string(*held);
  return check_model(options, shape);
}

result<bench_report> measure(const bench_options& options) {
  if (auto good = check_amounts(options); !good)
    return good.error();
  const auto parts = chosen_parts(options);
  if (!parts)
    return parts.error();
  bench_report report;
  report.version = TROUPE_VERSION;
  report.measured = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  report.host = describe_host();
  bench_run run(options, report);
  std::optional<bench_model_folder> model;
  if (std::any_of(parts->begin(), parts->end(), needs_model)) {
    auto opened = bench_model_folder::open(options, run.threads());
    if (!opened)
      return opened.error();
    model.emplace(std::move(*opened));
    if (auto noted = note_model(options, *model, report); !noted)
      return noted.error();
  }
  for (const auto& part : *parts)
    if (auto done = run_part(part, run, model ? model->path() : std::filesystem::path()); !done)
      return done.error();
  return report;
}

result<void> write_pictures(const bench_report& report, const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure)
    return error{errc::io_error,
                 fmt::format("{} cannot be made: {}", folder.string(), failure.message())};
  for (const auto& [name, picture] : {std::pair{"roofline.svg", roofline_svg(report)},
                                      std::pair{"scaling.svg", scaling_svg(report)}}) {
    if (picture.empty())
      warn(fmt::format("no {}: the report lacks its rows (--only {})",
                       name,
                       name == std::string_view("roofline.svg") ? "machine,kernels" : "cluster"));
    else if (auto written = write_file(folder / name, picture); !written)
      return written;
  }
  return {};
}

int compare_reports(const bench_options& options) {
  const auto before = read_bench_json(options.compare.front());
  if (!before)
    return fail(before.error());
  const auto after = read_bench_json(options.compare.back());
  if (!after)
    return fail(after.error());
  const auto found = compare(*before, *after);
  fmt::print("{}", options.json ? comparison_json(found) + "\n" : comparison_text(found));
  return found.has_worse() ? 1 : 0;
}

} // namespace

const std::vector<std::string>& bench_parts() {
  static const std::vector<std::string> parts{
    "machine", "transport", "collectives", "boundary", "kernels", "model", "cluster"};
  return parts;
}

int run_bench_command(const bench_options& options) {
  if (!options.compare.empty())
    return compare_reports(options);
  const auto report = options.show.empty() ? measure(options) : read_bench_json(options.show);
  if (!report)
    return fail(report.error());
  fmt::print("{}", options.json ? bench_json(*report) + "\n" : bench_text(*report));
  if (!options.output.empty())
    if (auto written = write_file(options.output, bench_json(*report) + "\n"); !written)
      return fail(written.error());
  if (!options.svg.empty())
    if (auto drawn = write_pictures(*report, options.svg); !drawn)
      return fail(drawn.error());
  return 0;
}

} // namespace troupe::cli
