#include "actors/node/node_start.hpp"

#include "actors/node/demo_model.hpp"
#include "actors/node/model_tokenizer.hpp"
#include "compute/cpu/instruction_sets.hpp"
#include "transport/ucx/ucx_transport.hpp"

#include <fmt/format.h>

#include <set>
#include <string>

namespace troupe::actors {

/// Before anything computes: the choice holds for the whole process.
result<void> choose_instruction_set(const cluster_settings& settings, std::size_t node) {
  const auto& wanted = settings.nodes[node].instruction_set;
  if (wanted.empty())
    return {};
  auto chosen = compute::cpu::use_instruction_set(wanted);
  if (chosen)
    return {};
  return error{
    errc::invalid_config,
    settings.point_at(fmt::format("node[{}].instruction_set", node), chosen.error().what)};
}

/// UCX goes on without a device that it does not find, and nobody would know over shared memory.
result<void> check_devices(const cluster_settings& settings, std::size_t node) {
  const auto& wanted = settings.nodes[node].devices;
  if (wanted.empty())
    return {};
  const auto found = transport::list_ucx_devices();
  if (!found)
    return found.error();
  std::set<std::string> names;
  for (const auto& one : *found)
    names.insert(one.device);
  for (const auto& device : wanted)
    if (device != "all" && !names.contains(device))
      return error{errc::invalid_config,
                   settings.point_at(fmt::format("node[{}].devices", node),
                                     fmt::format("UCX finds no device {}", device),
                                     fmt::format("one of {}", fmt::join(names, ", ")))};
  return {};
}

result<model_files> open_model_files(const cluster_settings& settings, std::size_t node) {
  const auto folder = model_folder_of(settings, settings.nodes[node]);
  if (!folder)
    return folder.error();
  model_files files;
  auto opened = compute::model::open(*folder);
  if (!opened)
    return opened.error();
  files.model = std::move(*opened);
  files.words_folder = settings.model.tokenizer.empty() ? *folder : settings.model.tokenizer;
  auto words = open_tokenizer(settings, *files.model);
  if (!words)
    return words.error();
  files.words = std::move(*words);
  return files;
}

} // namespace troupe::actors
