// roofline_svg (actors/cli/bench/report.hpp).
#include "actors/cli/bench/chart.hpp"
#include "actors/cli/bench/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace troupe::cli {

namespace {

constexpr double width = 760;
constexpr double height = 430;
constexpr double left = 70;
constexpr double right = 730;
constexpr double top = 78;
constexpr double bottom = 370;
constexpr double point = 9; ///< Across.

/// What a kernel is drawn as: the words that its row begins with, a name, a colour.
struct kind {
  std::string_view mark;
  std::string_view name;
  std::string_view colour;
};

constexpr std::array kinds{kind{", f32", "f32", "c0"},
                           kind{", bf16", "bf16", "c1"},
                           kind{", f16", "f16", "c2"},
                           kind{", int8", "int8", "c3"},
                           kind{", int4", "int4", "c4"},
                           kind{"attention", "attention", "c5"}};

std::optional<std::size_t> kind_of(const bench_row& row) {
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (row.what.find(kinds[i].mark) != std::string::npos)
      return i;
  return std::nullopt;
}

/// The machine's row of most threads.
const bench_row* most_threads(const bench_report& report, std::string_view what) {
  const bench_row* found = nullptr;
  for (const auto& row : report.rows)
    if (row.part == "machine" && row.what.starts_with(what)
        && (found == nullptr || row.threads > found->threads))
      found = &row;
  return found;
}

/// What a kernel did: a point.
struct kernel_point {
  const bench_row* row;
  double intensity; ///< Operations a byte.
  double rate;      ///< 1e9 operations a second.
};

std::vector<kernel_point> points_of(const bench_report& report) {
  std::vector<kernel_point> points;
  for (const auto& row : report.rows) {
    if (row.part != "kernels" || row.bytes <= 0 || row.operations <= 0 || row.found.median <= 0)
      continue;
    const auto intensity = row.operations / row.bytes;
    const auto rate = row.unit == "GB/s" ? row.found.median * intensity : row.found.median;
    points.push_back({&row, intensity, rate});
  }
  return points;
}

/// A logarithmic axis over whole powers of ten.
struct log_axis {
  int first; ///< Powers of ten.
  int last;
  double begin; ///< Places in the picture.
  double end;

  double at(double value) const {
    return begin + (end - begin) * (std::log10(value) - first) / (last - first);
  }

  static log_axis over(double least, double most, double begin, double end) {
    const auto low = static_cast<int>(std::floor(std::log10(least)));
    const auto high = static_cast<int>(std::ceil(std::log10(most)));
    return {low, std::max(high, low + 1), begin, end};
  }
};

class roofline_picture {
public:
  roofline_picture(const bench_report& report, double bandwidth, double flops, double dots)
    : report_(report), points_(points_of(report)), bandwidth_(bandwidth), flops_(flops),
      dots_(dots), x_(axis_of_intensities()), y_(axis_of_rates()),
      canvas_(width, height, "Kernels below the roofs of the machine", chart_style()) {}

  std::string draw() && {
    canvas_.rectangle({0, 0, width, height}, "page");
    draw_header();
    draw_axes();
    draw_roof(flops_, "f32 multiply-add");
    if (dots_ > flops_)
      draw_roof(dots_, "int8 multiply-add");
    for (const auto& one : points_)
      draw_point(one);
    return std::move(canvas_).finish();
  }

private:
  log_axis axis_of_intensities() const {
    double least = 0.3;
    double most = 100;
    for (const auto& one : points_) {
      least = std::min(least, one.intensity);
      most = std::max(most, one.intensity);
    }
    return log_axis::over(least, most, left, right);
  }

  log_axis axis_of_rates() const {
    double least = bandwidth_;
    double most = std::max(flops_, dots_);
    for (const auto& one : points_) {
      least = std::min(least, one.rate);
      most = std::max(most, one.rate);
    }
    return log_axis::over(least, most, bottom, top);
  }

  void draw_header() {
    canvas_.text(left, 26, "Kernels below the roofs of the machine", "title");
    canvas_.text(left,
                 44,
                 fmt::format("{}, {}; products of one layer of the 1.1B shape for 1, 8, 64 and "
                             "512 rows",
                             shortened(report_.host.cpu, 40),
                             report_.host.instruction_set),
                 "quiet small");
    double x = left;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const bool used = std::any_of(
        points_.begin(), points_.end(), [&](const auto& one) { return kind_of(*one.row) == i; });
      if (!used)
        continue;
      canvas_.rectangle({x, 54, point, point}, kinds[i].colour, point / 2);
      canvas_.text(x + 14, 63, kinds[i].name, "small");
      x += 30 + 7.0 * static_cast<double>(kinds[i].name.size());
    }
  }

  void draw_axes() {
    for (int power = x_.first; power <= x_.last; ++power) {
      const auto x = x_.at(std::pow(10.0, power));
      canvas_.line(x, top, x, bottom, "grid");
      canvas_.text(x, bottom + 17, fmt::format("{:g}", std::pow(10.0, power)), "small middle");
    }
    for (int power = y_.first; power <= y_.last; ++power) {
      const auto y = y_.at(std::pow(10.0, power));
      canvas_.line(left, y, right, y, "grid");
      canvas_.text(left - 8, y + 4, fmt::format("{:g}", std::pow(10.0, power)), "small right");
    }
    canvas_.text((left + right) / 2, bottom + 38, "operations for each byte read", "middle");
    canvas_.text(left - 8, top - 8, "Gop/s", "small right");
  }

  /// The bandwidth's slope up to a peak, and the peak from there on.
  void draw_roof(double peak, std::string_view name) {
    const auto least = std::pow(10.0, y_.first);
    const auto from = std::max(least / bandwidth_, std::pow(10.0, x_.first));
    const auto ridge = peak / bandwidth_;
    canvas_.line(x_.at(from), y_.at(from * bandwidth_), x_.at(ridge), y_.at(peak), "roof");
    canvas_.line(x_.at(ridge), y_.at(peak), right, y_.at(peak), "roof");
    canvas_.text(right - 4,
                 y_.at(peak) - 6,
                 fmt::format("{}: {} Gop/s", name, three_digits(peak)),
                 "small right");
    if (peak != flops_)
      return;
    const auto middle = std::sqrt(from * ridge);
    canvas_.text(x_.at(middle) - 10,
                 y_.at(middle * bandwidth_) - 2,
                 fmt::format("read bandwidth: {} GB/s", three_digits(bandwidth_)),
                 "small right");
  }

  void draw_point(const kernel_point& one) {
    const auto which = kind_of(*one.row);
    if (!which)
      return;
    const auto x = x_.at(one.intensity);
    const auto y = y_.at(one.rate);
    canvas_.rectangle(
      {x - point / 2, y - point / 2, point, point}, kinds[*which].colour, point / 2);
  }

  const bench_report& report_;
  const std::vector<kernel_point> points_;
  const double bandwidth_; ///< GB/s.
  const double flops_;     ///< Gop/s, as dots_.
  const double dots_;
  const log_axis x_;
  const log_axis y_;
  svg_canvas canvas_;
};

} // namespace

std::string roofline_svg(const bench_report& report) {
  const auto* reads = most_threads(report, "read bandwidth");
  const auto* flops = most_threads(report, "f32 multiply-add");
  const auto* dots = most_threads(report, "int8 multiply-add");
  if (reads == nullptr || flops == nullptr || points_of(report).empty() || reads->found.median <= 0
      || flops->found.median <= 0)
    return {};
  return roofline_picture(report,
                          reads->found.median,
                          flops->found.median,
                          dots == nullptr ? 0 : dots->found.median)
    .draw();
}

} // namespace troupe::cli
