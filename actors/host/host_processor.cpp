#include "actors/host/host_processor.hpp"

#include <algorithm>
#include <fstream>

namespace troupe::actors {

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name") || line.starts_with("CPU part")) // x86; ARM
      return line.substr(std::min(line.find(':') + 2, line.size()));
  return "unknown";
}

} // namespace troupe::actors
