#include "actors/node/guest.hpp"

#include "actors/control/run_folder.hpp"
#include "actors/control/system.hpp"
#include "actors/plan/guest_settings.hpp"
#include "actors/plan/settings_digest.hpp"
#include "config/cluster_file.hpp"

#include <fmt/core.h>

#include <chrono>

namespace troupe::actors {

namespace {

result<cluster_terms> ask_for_terms(const cluster_settings& own, const guest_wish& wish) {
  auto control = control_plane::start(own);
  if (!control)
    return control.error();
  const std::chrono::milliseconds patience{own.deadlines.connect_ms};
  auto head = (*control)->connect(wish.host, wish.port, patience);
  if (!head)
    return head.error();
  result<cluster_terms> heard = cluster_terms{};
  caf::scoped_actor self{(*control)->system()};
  self->request(*head, patience, terms_query{})
    .receive([&](cluster_terms& told) { heard = std::move(told); },
             [&](const caf::error& why) { heard = from_caf((*control)->system(), why); });
  return heard;
}

} // namespace

result<node_options> make_guest(const guest_wish& wish) {
  const auto file = fmt::format("troupe join {}:{}", wish.host, wish.port);
  for (const auto& one : wish.overrides)
    if (one.starts_with("node["))
      return error{errc::invalid_config,
                   fmt::format("--set {}: the nodes have no numbers here; node.{}... would work",
                               one,
                               wish.name)};
  auto overrides = wish.overrides;
  overrides.push_back(override_with("model.path", wish.model.string()));
  const auto text = fmt::format("[model]\n[[node]]\nname = '{}'\n", wish.name);
  const auto own = parse_lone_node(text, file, overrides);
  if (!own)
    return own.error();
  if (auto files = check_security_files(*own); !files)
    return files.error();
  const auto terms = ask_for_terms(*own, wish);
  if (!terms)
    return with_context(file, terms.error());
  std::erase_if(overrides, [](const std::string& one) { return one.starts_with("node."); });
  const auto agreed = parse_cluster_text(terms->agreed, file, overrides);
  if (!agreed)
    return agreed.error();
  if (agreed->find_node(wish.name) != nullptr)
    return error{
      errc::invalid_config,
      fmt::format(
        "{}: the cluster file has a node '{}' already; another name would work", file, wish.name)};
  auto present = parse_cluster_text(terms->present, file, overrides);
  if (!present)
    return present.error();
  auto& head = present->nodes.at(present->head_index());
  head.advertise = wish.host;
  head.port = wish.port;
  const auto section = node_text(*own, 0);
  auto settings = parse_with_guest(*present, own->nodes.front(), section, wish.overrides);
  if (!settings)
    return settings.error();
  node_options options;
  options.name = wish.name;
  options.guest = guest_terms{section, settings_digest(*agreed)};
  options.run_folder = run_folder_for(*settings);
  options.settings = *std::move(settings);
  return options;
}

} // namespace troupe::actors
