// comparison_json (actors/cli/bench/compare.hpp), apart: JSON is a heavy header.
#include "actors/cli/bench/compare.hpp"

#include <nlohmann/json.hpp>

namespace troupe::cli {

using nlohmann::ordered_json;

namespace {

const char* word_of(bench_change::verdict is) {
  switch (is) {
  case bench_change::verdict::better: return "better";
  case bench_change::verdict::worse: return "worse";
  case bench_change::verdict::same: break;
  }
  return "same";
}

ordered_json names_json(const std::vector<const bench_row*>& rows) {
  auto list = ordered_json::array();
  for (const auto* row : rows)
    list.push_back({{"part", row->part}, {"what", row->what}});
  return list;
}

} // namespace

std::string comparison_json(const bench_comparison& found) {
  auto changes = ordered_json::array();
  for (const auto& change : found.changes)
    changes.push_back({{"part", change.before->part},
                       {"what", change.before->what},
                       {"unit", change.before->unit},
                       {"before", change.before->found.median},
                       {"now", change.after->found.median},
                       {"change", change.by},
                       {"verdict", word_of(change.is)}});
  const ordered_json whole{{"worse", found.has_worse()},
                           {"differences", found.differences},
                           {"changes", std::move(changes)},
                           {"only_before", names_json(found.only_old)},
                           {"only_now", names_json(found.only_new)}};
  return whole.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace troupe::cli
