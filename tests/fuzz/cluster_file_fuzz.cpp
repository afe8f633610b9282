// A cluster file: it is read, and what is accepted can be described.

#include "config/cluster_file.hpp"

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto settings =
    troupe::parse_cluster_text({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
  if (!settings)
    return settings.error().what.empty() ? std::abort(), 0 : 0;
  if (troupe::describe_settings(*settings).empty())
    std::abort();
  return 0;
}
