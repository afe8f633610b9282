// examine_network and examine_model (actors/cli/doctor.hpp).
#include "actors/cli/doctor.hpp"
#include "actors/cli/local_cluster.hpp"
#include "actors/cli/status_text.hpp"
#include "actors/host/host_memory.hpp"
#include "actors/host/host_network.hpp"
#include "actors/node/demo_model.hpp"
#include "actors/node/launcher.hpp"
#include "actors/node/model_tokenizer.hpp"
#include "actors/plan/plan.hpp"
#include "compute/tokenizer/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace troupe::cli {

using std::chrono::milliseconds;

namespace {

// Any port will do to see whether a host answers: a refusal is an answer.
constexpr std::uint16_t any_port = 9;

void examine_addresses(const cluster_settings& settings,
                       const std::vector<std::size_t>& local,
                       findings& found) {
  std::string ours;
  for (const auto& address : actors::addresses_of_this_host())
    ours += (ours.empty() ? "" : ", ") + address;
  if (local.empty())
    return found.warn("addresses",
                      fmt::format("no node of {} belongs on this host ({})", settings.file, ours),
                      "name one of these addresses in a [[node]], or run this where one belongs");
  std::string names;
  for (const auto index : local)
    names += fmt::format("{}{} at {}",
                         names.empty() ? "" : ", ",
                         settings.nodes[index].name,
                         settings.nodes[index].advertise);
  found.ok("addresses", fmt::format("of this host: node {} (has {})", names, ours));
}

void examine_ports(const cluster_settings& settings,
                   const std::vector<std::size_t>& local,
                   findings& found) {
  for (const auto index : local) {
    const auto& node = settings.nodes[index];
    const auto port = static_cast<std::uint16_t>(node.port);
    const auto bound = actors::try_bind(node.bind, port);
    const auto text =
      fmt::format("node {} on {}", node.name, actors::name_endpoint(node.bind, port));
    if (bound)
      found.ok("ports", text + (port == 0 ? ": any free one" : ": free"));
    else
      found.fail("ports",
                 settings.point_at(fmt::format("node[{}].{}", index, port == 0 ? "bind" : "port"),
                                   fmt::format("{}: {}", text, bound.error().what)),
                 "stop what holds it, or choose another");
  }
}

void examine_hosts(const cluster_settings& settings,
                   const std::vector<std::size_t>& local,
                   findings& found) {
  std::set<std::string> asked;
  for (std::size_t index = 0; index < settings.nodes.size(); ++index) {
    const auto& node = settings.nodes[index];
    if (std::find(local.begin(), local.end(), index) != local.end()
        || !asked.insert(node.advertise).second)
      continue;
    const auto port = node.port != 0 ? static_cast<std::uint16_t>(node.port) : any_port;
    const auto there =
      actors::reach(node.advertise, port, milliseconds(settings.deadlines.connect_ms));
    const bool answers =
      there || there.error().what.find("Connection refused") != std::string::npos;
    if (answers)
      found.ok("hosts",
               fmt::format("{} answers (node {}); run this there for the way back",
                           node.advertise,
                           node.name));
    else
      found.fail("hosts",
                 fmt::format("node {}: {}", node.name, there.error().what),
                 "check the address, the network and firewalls between; ranks use any TCP port, "
                 "or RDMA");
  }
}

// True when it runs.
bool examine_cluster(const cluster_settings& settings, findings& found) {
  auto client = find_running(settings);
  if (!client) {
    found.fail("cluster", client.error().what, "the same file and secret on every host");
    return true;
  }
  if (*client == nullptr) {
    found.ok("cluster", "does not run");
    return false;
  }
  const auto text = describe_state(**client, milliseconds(settings.deadlines.status_ms));
  if (text)
    found.ok("cluster", "runs: " + *text);
  else
    found.fail("cluster", text.error().what, "look at its logs: troupe up --log");
  return true;
}

void examine_files(const cluster_settings& settings,
                   const actors::cluster_plan& plan,
                   const compute::model& model,
                   std::size_t node,
                   findings& found) {
  const auto tensors = actors::find_tensors(settings, plan, model, node);
  if (!tensors)
    return found.fail("model", tensors.error().what, "copy the model's files to this host");
  found.ok("model",
           fmt::format("node {}: {} of its ranks in {}",
                       settings.nodes[node].name,
                       counted(*tensors, "tensor"),
                       model.folder().string()));
}

void examine_tokenizer(const cluster_settings& settings,
                       const compute::model& model,
                       std::size_t node,
                       findings& found) {
  const auto words = actors::open_tokenizer(settings, model);
  if (!words)
    return found.fail("tokenizer",
                      fmt::format("node {}: {}", settings.nodes[node].name, words.error().what),
                      "copy the tokenizer's files of the model to this host, or set "
                      "model.tokenizer");
  // The digest is what the nodes compare when they meet: equal lines on all hosts.
  found.ok("tokenizer",
           fmt::format("node {}: {}, digest {}",
                       settings.nodes[node].name,
                       counted((*words)->vocabulary_size(), "token"),
                       compute::to_string((*words)->digest())));
}

void examine_memory(const cluster_settings& settings,
                    const actors::cluster_plan& plan,
                    std::size_t node,
                    findings& found) {
  const auto& needs = plan.nodes.at(node);
  const auto text =
    fmt::format("node {} needs {}", settings.nodes[node].name, bytes_text(needs.needed_bytes));
  if (!needs.budget_known)
    return found.ok("memory", text);
  const auto both = fmt::format("{} of {}", text, bytes_text(needs.budget_bytes));
  if (needs.needed_bytes <= needs.budget_bytes)
    return found.ok("memory", both);
  found.fail("memory", both, "fewer ranks here, model.dtype, or a smaller model.context");
}

} // namespace

void examine_network(const cluster_settings& settings, findings& found) {
  const auto local = actors::nodes_of_this_host(settings);
  examine_addresses(settings, local, found);
  if (const auto files = check_security_files(settings); !files)
    found.fail("security", files.error().what, "see [security] of the cluster file");
  else
    found.ok("security",
             settings.security.has_secret()         ? "a shared secret"
             : settings.security.has_certificates() ? "certificates"
                                                    : "none: loopback only");
  examine_hosts(settings, local, found);
  if (!examine_cluster(settings, found))
    examine_ports(settings, local, found);
}

void examine_model(const cluster_settings& settings, findings& found) {
  for (const auto node : actors::nodes_of_this_host(settings)) {
    const auto folder = actors::model_folder_of(settings, settings.nodes[node]);
    if (!folder)
      return found.fail("model", folder.error().what, "set model.path");
    const auto model = compute::model::open(*folder);
    if (!model)
      return found.fail(
        "model", model.error().what, "copy the model to this host, or set model.path");
    examine_tokenizer(settings, **model, node, found);
    auto plan = actors::lay_out(settings, **model);
    if (!plan)
      return found.fail("plan", plan.error().what, "troupe plan shows who would hold what");
    examine_files(settings, *plan, **model, node, found);
    if (const auto fits = actors::fit_state(settings, *plan, actors::available_memory_bytes());
        !fits)
      return found.fail("memory", fits.error().what, "troupe plan shows who would hold what");
    examine_memory(settings, *plan, node, found);
  }
}

} // namespace troupe::cli
