#pragma once
// What `troupe plan` shows, as plain values, and its three forms: text, JSON, picture.

#include "actors/forecast/cluster_here.hpp"
#include "actors/plan/plan.hpp"
#include "config/cluster_file.hpp"
#include "config/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

/// A node as the plan's reader knows it.
struct plan_node {
  std::string name;
  std::string address; ///< Where the others reach it.
  std::size_t ranks = 0;
};

struct plan_report {
  std::string cluster;
  std::string file;         ///< Of the cluster.
  std::string model_folder; ///< As found on this host.
  std::string model_digest; ///< Of the description: equal on every node that holds this model.
  compute::model_shape shape;
  dtype wire = dtype::f32; ///< Of boundaries.
  actors::cluster_plan plan;
  std::vector<plan_node> nodes;
  std::size_t found_bytes = 0;           ///< Free memory of this host; 0: the system does not say.
  std::string refusal;                   ///< Why it does not fit into memory; empty: it does.
  std::optional<actors::forecast> speed; ///< Where this host was measured.
  std::string missing; ///< What a node of this host would not find here; empty: nothing.

  bool fits() const { return refusal.empty(); }

  /// Whether all nodes are on this host.
  bool all_here() const;
};

/// Reads the model's headers and works the plan out; reserves nothing. A plan that does not fit
/// into memory, or whose files are not all here, is a report that says so; everything else that is
/// wrong is an error.
result<plan_report> make_plan_report(const cluster_settings& settings);

/// "0-3", "7", "-" when empty.
std::string range_text(const range& units);

/// Payload bytes that one row carries over one boundary, all links of the tensor group together.
std::size_t boundary_bytes(const plan_report& report);

/// What a reader should know beside a plan that fits: budgets above what this host has free.
std::vector<std::string> plan_warnings(const plan_report& report);

/// Layers, widths, heads and vocabulary, on one line.
std::string shape_words(const compute::model_shape& shape);

/// Tables for people.
std::string plan_text(const plan_report& report);

/// One JSON object with everything; the keys are documented by their names and stay as they are.
std::string plan_json(const plan_report& report);

/// A picture: stages as columns, ranks as boxes with bars of memory to one scale, arrows with the
/// bytes of a token. One SVG file without outside parts, for light and dark pages.
std::string plan_svg(const plan_report& report);

} // namespace troupe::cli
