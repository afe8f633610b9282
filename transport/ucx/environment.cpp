#include "config/log.hpp"
#include "transport/ucx/error.hpp"
#include "transport/ucx/ucx_transport.hpp"

#include <ucp/api/ucp.h>
#include <ucs/debug/log_def.h>
#include <uct/api/uct.h>

#include <fmt/core.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace troupe::transport {

namespace {

/// UCX reports each refused reconnect as an error of its own; the errors that matter reach us as
/// status codes, so its lines are for those who debug.
ucs_log_func_rc_t write_to_our_log(const char*,
                                   unsigned,
                                   const char*,
                                   ucs_log_level_t level,
                                   const ucs_log_component_config_t*,
                                   const char* format,
                                   va_list arguments) {
  char line[512];
  std::vsnprintf(line, sizeof line, format, arguments);
  if (level <= UCS_LOG_LEVEL_FATAL)
    log::error("ucx fatal \"{}\"", line);
  else
    log::debug("ucx says \"{}\"", line);
  return UCS_LOG_FUNC_RC_STOP;
}

} // namespace

void prepare_environment() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Without these two UCX silently takes TCP between processes of one host, since we ask for
    // endpoints that report failures.
    ::setenv("UCX_POSIX_ERROR_HANDLING", "y", 0);
    ::setenv("UCX_SYSV_ERROR_HANDLING", "y", 0);
    // A dead peer behind shared memory is found at the next keepalive round, 20 s by default, and
    // only once its parent has reaped it.
    ::setenv("UCX_KEEPALIVE_INTERVAL", "1s", 0);
    // UCX waits in connect() otherwise: minutes where a firewall swallows packets, on a thread that
    // serves all other peers as well.
    ::setenv("UCX_TCP_CONN_NB", "y", 0);
    // A row of 4096 f32 values and our header in one fragment; by default 8 KiB just miss it.
    ::setenv("UCX_POSIX_SEG_SIZE", "20k", 0);
    ::setenv("UCX_SYSV_SEG_SIZE", "20k", 0);
    ::setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 0);
    if (std::getenv("UCX_LOG_LEVEL") == nullptr)
      ucs_log_push_handler(write_to_our_log);
  });
}

std::string ucx_version() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

namespace {

void add_devices_of(uct_component_h component,
                    const char* domain_name,
                    std::vector<ucx_device>& found) {
  uct_md_config_t* config = nullptr;
  if (uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK)
    return;
  uct_md_h domain = nullptr;
  const auto opened = uct_md_open(component, domain_name, config, &domain);
  uct_config_release(config);
  if (opened != UCS_OK)
    return; // For example RDMA without hardware: not a device of this host.
  uct_tl_resource_desc_t* resources = nullptr;
  unsigned count = 0;
  if (uct_md_query_tl_resources(domain, &resources, &count) == UCS_OK) {
    for (unsigned i = 0; i < count; ++i)
      found.push_back({resources[i].tl_name, resources[i].dev_name});
    uct_release_tl_resource_list(resources);
  }
  uct_md_close(domain);
}

void add_devices_of(uct_component_h component, std::vector<ucx_device>& found) {
  uct_component_attr_t attributes{};
  attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
  if (uct_component_query(component, &attributes) != UCS_OK)
    return;
  std::vector<uct_md_resource_desc_t> domains(attributes.md_resource_count);
  attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
  attributes.md_resources = domains.data();
  if (domains.empty() || uct_component_query(component, &attributes) != UCS_OK)
    return;
  for (const auto& domain : domains)
    add_devices_of(component, domain.md_name, found);
}

} // namespace

result<std::vector<ucx_device>> list_ucx_devices() {
  uct_component_h* components = nullptr;
  unsigned count = 0;
  if (const auto status = uct_query_components(&components, &count); status != UCS_OK)
    return ucx::to_error(status, "list the components of UCX");
  std::vector<ucx_device> found;
  for (unsigned i = 0; i < count; ++i)
    add_devices_of(components[i], found);
  uct_release_component_list(components);
  return found;
}

} // namespace troupe::transport
