// scaling_svg (actors/cli/bench/report.hpp), and the colours of both pictures.
#include "actors/cli/bench/chart.hpp"
#include "actors/cli/bench/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace troupe::cli {

namespace {

constexpr double width = 760;
constexpr double margin = 28;
constexpr double first_panel = 92;
constexpr double name_room = 150; ///< Left of the bars.
constexpr double value_room = 110;
constexpr double bar_height = 16;
constexpr double bar_step = 24;
constexpr double panel_gap = 42;

/// A kind of work, each with a scale of its own.
struct panel {
  std::string title;
  std::vector<const bench_row*> rows;

  double most() const {
    double found = 0;
    for (const auto* row : rows)
      found = std::max({found, row->found.high, row->limit});
    return found;
  }

  double height() const { return static_cast<double>(rows.size()) * bar_step; }
};

/// "decode, 1 stream, PP 2 x 1 thread": the work, and how it is run.
std::pair<std::string, std::string> split_name(const std::string& what) {
  const auto comma = what.rfind(", ");
  if (comma == std::string::npos)
    return {what, {}};
  return {what.substr(0, comma), what.substr(comma + 2)};
}

std::vector<panel> panels_of(const bench_report& report) {
  std::vector<panel> panels;
  for (const auto& row : report.rows) {
    if (row.part != "cluster" || row.unit != "tokens/s" || row.found.median <= 0)
      continue;
    const auto title = split_name(row.what).first;
    auto found = std::find_if(
      panels.begin(), panels.end(), [&](const panel& one) { return one.title == title; });
    if (found == panels.end())
      found = panels.insert(panels.end(), {title, {}});
    found->rows.push_back(&row);
  }
  return panels;
}

class scaling_picture {
public:
  scaling_picture(const bench_report& report, const std::vector<panel>& panels)
    : report_(report), panels_(panels),
      canvas_(width, height(), "Tokens a second of each way to run one model", chart_style()) {}

  std::string draw() && {
    canvas_.rectangle({0, 0, width, height()}, "page");
    canvas_.text(margin, 30, "One model, run in each way", "title");
    canvas_.text(
      margin,
      50,
      fmt::format("{} held as {}; {}; tokens a second, and a mark where the machine ends",
                  shortened(report_.model, 24),
                  report_.held,
                  shortened(report_.host.cpu, 40)),
      "quiet small");
    double y = first_panel;
    for (const auto& one : panels_) {
      draw_panel(one, y);
      y += one.height() + panel_gap;
    }
    return std::move(canvas_).finish();
  }

private:
  double height() const {
    double sum = first_panel - 20;
    for (const auto& one : panels_)
      sum += one.height() + panel_gap;
    return sum;
  }

  void draw_panel(const panel& one, double y) {
    canvas_.text(margin, y - 8, one.title, "strong");
    const auto room = width - 2 * margin - name_room - value_room;
    const auto scale = room / std::max(one.most(), 1e-9);
    for (std::size_t i = 0; i < one.rows.size(); ++i) {
      const auto& row = *one.rows[i];
      const auto at = y + static_cast<double>(i) * bar_step;
      const auto x = margin + name_room;
      canvas_.text(x - 10, at + 13, split_name(row.what).second, "small right");
      canvas_.rectangle({x, at, row.found.median * scale, bar_height}, colour_of(row), 2);
      canvas_.line(x + row.found.low * scale,
                   at + bar_height / 2,
                   x + row.found.high * scale,
                   at + bar_height / 2,
                   "whisker");
      if (row.limit > 0)
        canvas_.line(
          x + row.limit * scale, at - 3, x + row.limit * scale, at + bar_height + 3, "limit");
      canvas_.text(x + std::max(row.limit, row.found.high) * scale + 8,
                   at + 13,
                   row.limit > 0 ? fmt::format(
                     "{}, {:.0f} %", three_digits(row.found.median), row.fraction * 100)
                                 : three_digits(row.found.median),
                   "small");
    }
  }

  static std::string_view colour_of(const bench_row& row) {
    const auto way = split_name(row.what).second;
    return way.starts_with("PP") ? "c1" : way.starts_with("TP") ? "c2" : "c0";
  }

  const bench_report& report_;
  const std::vector<panel>& panels_;
  svg_canvas canvas_;
};

} // namespace

std::string_view chart_style() {
  return ".grid { stroke: #e1e6eb; }\n"
         ".roof { stroke: #59636e; stroke-width: 2; }\n"
         ".limit { stroke: #1f2328; stroke-width: 2; }\n"
         ".whisker { stroke: #1f2328; stroke-width: 1; stroke-opacity: 0.6; }\n"
         ".c0 { fill: #2f6fdb; }\n"
         ".c1 { fill: #d9822b; }\n"
         ".c2 { fill: #1a7f5a; }\n"
         ".c3 { fill: #6a55c2; }\n"
         ".c4 { fill: #cf222e; }\n"
         ".c5 { fill: #7a8490; }\n"
         "@media (prefers-color-scheme: dark) {\n"
         "  .grid { stroke: #262c36; }\n"
         "  .roof { stroke: #9aa4af; }\n"
         "  .limit, .whisker { stroke: #e6edf3; }\n"
         "  .c0 { fill: #5b93f0; }\n"
         "  .c1 { fill: #f0a45a; }\n"
         "  .c2 { fill: #3fb98a; }\n"
         "  .c3 { fill: #a594f0; }\n"
         "  .c4 { fill: #ff7b72; }\n"
         "  .c5 { fill: #9aa4af; }\n"
         "}\n";
}

std::string scaling_svg(const bench_report& report) {
  const auto panels = panels_of(report);
  return panels.empty() ? std::string() : scaling_picture(report, panels).draw();
}

} // namespace troupe::cli
