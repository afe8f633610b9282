// plan_svg (actors/cli/plan_report.hpp): the plan as a picture.
#include "actors/cli/command.hpp"
#include "actors/cli/plan_report.hpp"
#include "actors/cli/svg_canvas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace troupe::cli {

namespace {

constexpr double margin = 28;
constexpr double header = 108;
constexpr double stage_title = 34;
constexpr double box_width = 252;
constexpr double box_height = 150;
constexpr double box_gap = 18;
constexpr double frame_room = 12; ///< Between the frame of a stage and its boxes.
constexpr double frame_foot = 26; ///< For what a tensor group sums.
constexpr double column_gap = 116;
constexpr double node_height = 34;
constexpr double least_width = 720;

constexpr std::string_view style =
  ".frame { fill: #f6f8fa; stroke: #d1d9e0; }\n"
  ".box { fill: #ffffff; stroke: #8c959f; }\n"
  ".track { fill: #e8ecf0; }\n"
  ".unknown { fill: none; stroke: #8c959f; stroke-dasharray: 4 3; }\n"
  ".shard { fill: #6a55c2; }\n"
  ".weights { fill: #2f6fdb; }\n"
  ".state { fill: #d9822b; }\n"
  ".scratch { fill: #7a8490; }\n"
  ".full { fill: #cf222e; }\n"
  "text.full { fill: #cf222e; }\n"
  ".link { stroke: #1a7f5a; stroke-width: 2; }\n"
  ".head { fill: #1a7f5a; stroke: none; }\n"
  "@media (prefers-color-scheme: dark) {\n"
  "  .frame { fill: #151b23; stroke: #3d444d; }\n"
  "  .box { fill: #0d1117; stroke: #656c76; }\n"
  "  .track { fill: #262c36; }\n"
  "  .shard { fill: #a594f0; }\n"
  "  .weights { fill: #5b93f0; }\n"
  "  .state { fill: #f0a45a; }\n"
  "  text.full, .full { fill: #ff7b72; }\n"
  "  .link { stroke: #3fb98a; }\n"
  "  .head { fill: #3fb98a; }\n"
  "}\n";

/// One picture of one report; members in the order in which they draw.
class plan_picture {
public:
  explicit plan_picture(const plan_report& report)
    : report_(report), plan_(report.plan),
      canvas_(width(), height(), "The plan of cluster " + report.cluster, style) {
    for (const auto& rank : plan_.ranks)
      widest_ = std::max(widest_, rank.total_bytes());
  }

  std::string draw() && {
    canvas_.rectangle({0, 0, width(), height()}, "page");
    draw_header();
    for (std::size_t stage = 0; stage < plan_.sizes.pipeline; ++stage)
      draw_stage(stage);
    for (const auto& rank : plan_.ranks)
      draw_rank(rank);
    draw_nodes();
    return std::move(canvas_).finish();
  }

private:
  double columns_width() const {
    const auto stages = static_cast<double>(plan_.sizes.pipeline);
    return stages * (box_width + 2 * frame_room) + (stages - 1) * column_gap;
  }

  double width() const { return 2 * margin + std::max(columns_width(), least_width); }

  double boxes_height() const {
    const auto ranks = static_cast<double>(plan_.sizes.tensor);
    return ranks * box_height + (ranks - 1) * box_gap;
  }

  double frame_height() const {
    return stage_title + boxes_height() + frame_room + (plan_.sizes.tensor > 1 ? frame_foot : 0);
  }

  double nodes_top() const { return header + frame_height() + 30; }

  double height() const {
    return nodes_top() + 22 + node_height * static_cast<double>(report_.nodes.size()) + margin - 8;
  }

  double frame_left(std::size_t stage) const {
    const auto start = (width() - columns_width()) / 2;
    return start + static_cast<double>(stage) * (box_width + 2 * frame_room + column_gap);
  }

  svg_box box_of(const coordinates& where) const {
    return {frame_left(where.pipeline) + frame_room,
            header + stage_title + static_cast<double>(where.tensor) * (box_height + box_gap),
            box_width,
            box_height};
  }

  void draw_header() {
    const auto& shape = report_.shape;
    const auto name = std::filesystem::path(report_.model_folder).filename().string();
    canvas_.text(margin,
                 margin + 14,
                 fmt::format("{}: {} on {}, {} x {}",
                             shortened(report_.cluster, 24),
                             shortened(name, 40),
                             counted(plan_.ranks.size(), "rank"),
                             counted(plan_.sizes.pipeline, "stage"),
                             counted(plan_.sizes.tensor, "tensor rank")),
                 "title");
    canvas_.text(margin,
                 margin + 36,
                 fmt::format("{}, {}, hidden {}, {}, {}, vocabulary {}, held as {}",
                             shape.family,
                             counted(shape.layers, "layer"),
                             shape.hidden,
                             counted(shape.heads, "head"),
                             counted(shape.kv_heads, "KV head"),
                             shape.vocabulary,
                             to_string(plan_.hold)),
                 "quiet");
    draw_legend(margin + 50);
  }

  void draw_legend(double y) {
    double x = margin;
    for (const auto& [kind, name] : {std::pair{"weights", "weights"},
                                     {"state", "attention state"},
                                     {"scratch", "scratch"},
                                     {"shard", "its part of layers (across) and heads (down)"}}) {
      canvas_.rectangle({x, y, 10, 10}, kind, 2);
      canvas_.text(x + 15, y + 9, name, "small quiet");
      x += 36 + 6.0 * static_cast<double>(std::string_view(name).size());
    }
    canvas_.text(x,
                 y + 9,
                 report_.fits() ? fmt::format("a full bar is {}", bytes_text(widest_))
                                : "does not fit: shown with the state of one sequence",
                 report_.fits() ? "small quiet" : "small full");
  }

  void draw_stage(std::size_t stage) {
    const auto left = frame_left(stage);
    canvas_.rectangle({left, header, box_width + 2 * frame_room, frame_height()}, "frame", 10);
    const auto& layers = plan_.stages[stage];
    canvas_.text(left + frame_room,
                 header + 22,
                 fmt::format("stage {}: layers {}", stage, range_text(layers)),
                 "strong");
    if (plan_.sizes.tensor == 1)
      return;
    const auto first = stage * plan_.sizes.tensor; // ranks are numbered stage by stage
    canvas_.text(left + frame_room + box_width / 2,
                 header + frame_height() - 12,
                 fmt::format("{} ranks sum {} a token",
                             plan_.sizes.tensor,
                             bytes_text(plan_.ranks[first].reduce_row_bytes)),
                 "small quiet middle");
  }

  void draw_rank(const actors::rank_plan& rank) {
    const auto box = box_of(rank.where);
    const auto& shard = rank.shard;
    const bool table = rank.record.owns_input || rank.record.owns_output;
    canvas_.rectangle(box, "box", 8);
    const auto left = box.x + 14;
    const auto right = box.x + box.width - 14;
    canvas_.text(left, box.y + 23, fmt::format("rank {}", number(rank.rank)), "strong");
    canvas_.text(right,
                 box.y + 23,
                 "node " + shortened(report_.nodes[rank.node].name, 20),
                 "small quiet right");
    double y = box.y + 42;
    for (const auto& words :
         {fmt::format("layers {}", range_text(rank.record.units)),
          fmt::format("heads {}, KV {}", range_text(shard.heads), range_text(shard.kv_heads)),
          fmt::format("ffn columns {}", range_text(shard.ffn)),
          fmt::format("vocabulary {}", table ? range_text(shard.vocabulary) : "-")}) {
      canvas_.text(left, y, words, "small");
      y += 16;
    }
    draw_shard(rank, {right - 60, box.y + 34, 60, 56});
    draw_memory(rank, {left, box.y + 106, right - left, 12});
    canvas_.text(left,
                 box.y + 136,
                 fmt::format("{}: {} + {} + {}",
                             bytes_text(rank.total_bytes()),
                             bytes_text(rank.weight_bytes),
                             bytes_text(rank.state_bytes),
                             bytes_text(rank.scratch_bytes)),
                 "small");
    if (!rank.record.owns_output)
      draw_boundary(box);
  }

  /// The whole model as a field, layers from left to right and heads from top to bottom, and in it
  /// what this rank has.
  void draw_shard(const actors::rank_plan& rank, const svg_box& field) {
    const auto layers = static_cast<double>(report_.shape.layers);
    const auto heads = static_cast<double>(report_.shape.heads);
    const auto& units = rank.record.units;
    const auto& own = rank.shard.heads;
    canvas_.rectangle(field, "track", 3);
    canvas_.rectangle({field.x + field.width * static_cast<double>(units.begin) / layers,
                       field.y + field.height * static_cast<double>(own.begin) / heads,
                       std::max(1.0, field.width * static_cast<double>(units.size()) / layers),
                       std::max(1.0, field.height * static_cast<double>(own.size()) / heads)},
                      "shard",
                      2);
  }

  void draw_memory(const actors::rank_plan& rank, const svg_box& bar) {
    canvas_.rectangle(bar, "track", 3);
    double x = bar.x;
    const auto add = [&](std::size_t bytes, std::string_view kind) {
      const auto part = bar.width * static_cast<double>(bytes)
                        / static_cast<double>(std::max<std::size_t>(widest_, 1));
      canvas_.rectangle({x, bar.y, part, bar.height}, kind);
      x += part;
    };
    add(rank.weight_bytes, "weights");
    add(rank.state_bytes, "state");
    add(rank.scratch_bytes, "scratch");
  }

  void draw_boundary(const svg_box& box) {
    const auto y = box.y + box.height / 2;
    const auto from = box.x + box.width + frame_room + 4;
    const auto to = from + column_gap - 8;
    canvas_.arrow(from, y, to, y, "link");
    canvas_.text((from + to) / 2, y - 9, bytes_text(plan_.boundary_row_bytes), "strong middle");
    canvas_.text((from + to) / 2, y + 18, "a token", "small quiet middle");
  }

  void draw_nodes() {
    double y = nodes_top();
    canvas_.text(margin, y, "Memory of the nodes", "strong");
    y += 14;
    for (const auto& node : plan_.nodes) {
      draw_node(node, y);
      y += node_height;
    }
  }

  void draw_node(const actors::node_plan& node, double y) {
    const svg_box bar{margin + 170, y + 6, 220, 12};
    canvas_.text(margin, y + 16, shortened(report_.nodes[node.node].name, 24), "");
    const auto words = bar.x + bar.width + 16;
    if (!node.budget_known) {
      canvas_.rectangle(bar, "unknown", 3);
      canvas_.text(
        words,
        y + 16,
        fmt::format("needs {}; what it has is unknown from here", bytes_text(node.needed_bytes)),
        "small");
      return;
    }
    const bool fits = node.needed_bytes <= node.budget_bytes;
    const auto part =
      static_cast<double>(node.needed_bytes) / static_cast<double>(node.budget_bytes);
    canvas_.rectangle(bar, "track", 3);
    canvas_.rectangle({bar.x, bar.y, std::max(2.0, bar.width * std::min(part, 1.0)), bar.height},
                      fits ? "weights" : "full",
                      3);
    canvas_.text(words,
                 y + 16,
                 fmt::format("needs {} of {} ({:.0f} %)",
                             bytes_text(node.needed_bytes),
                             bytes_text(node.budget_bytes),
                             part * 100),
                 fits ? "small" : "small full");
  }

  const plan_report& report_;
  const actors::cluster_plan& plan_;
  svg_canvas canvas_;
  std::size_t widest_ = 0; ///< Bytes of the rank that holds most.
};

} // namespace

std::string plan_svg(const plan_report& report) {
  return plan_picture{report}.draw();
}

} // namespace troupe::cli
