// config_json (actors/cli/config.hpp), apart from the text: JSON is a heavy header.
#include "actors/cli/config.hpp"

#include <nlohmann/json.hpp>

namespace troupe::cli {

using nlohmann::ordered_json;

std::string config_json(std::span<const setting_row> rows) {
  auto list = ordered_json::array();
  for (const auto& row : rows)
    list.push_back(
      {{"key", row.key}, {"value", row.value}, {"origin", row.origin}, {"reason", row.reason}});
  return list.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace troupe::cli
