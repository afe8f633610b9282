#include "actors/plan/settings_digest.hpp"

#include "compute/weights/digest.hpp"
#include "config/cluster_file.hpp"

namespace troupe::actors {

namespace {

/// Keys that a host may set for itself.
bool is_local(std::string_view key) {
  constexpr std::string_view local_sections[]{"cluster.log",
                                              "model.path",
                                              "model.tokenizer",
                                              "deadlines.",
                                              "security.",
                                              "generate.",
                                              "limits.",
                                              "recovery.journal",
                                              "recovery.restart",
                                              "recovery.shrink",
                                              "serve."};
  for (const auto section : local_sections)
    if (key.substr(0, section.size()) == section)
      return true;
  if (key.substr(0, 5) != "node.")
    return false;
  const auto field = key.substr(key.rfind('.') + 1);
  return field != "name" && field != "ranks" && field != "weight" && field != "spare";
}

} // namespace

std::string settings_digest(const cluster_settings& settings) {
  compute::digest_stream agreed;
  for (const auto& row : describe_settings(settings)) {
    if (is_local(row.key))
      continue;
    agreed.add_text(row.key);
    agreed.add_text(row.value);
  }
  return compute::to_string(agreed.digest());
}

} // namespace troupe::actors
