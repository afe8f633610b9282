// The one place that knows which backends this build has.

#include "compute/cpu/cpu_device.hpp"
#include "compute/device.hpp"

#include <fmt/core.h>

namespace troupe::compute {

result<std::unique_ptr<device>> make_device(const std::string& kind,
                                            const device_options& options) {
  if (kind == "cpu")
    return cpu::make_cpu_device(options);
  if (kind == "cuda")
    return error{errc::unsupported,
                 "device cuda: this build has no GPU backend; use the device \"cpu\""};
  return error{errc::invalid_argument,
               fmt::format("device {}: unknown, use \"cpu\" or \"cuda\"", kind)};
}

} // namespace troupe::compute
