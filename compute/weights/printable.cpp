#include "compute/weights/printable.hpp"

#include <fmt/core.h>

namespace troupe::compute {

std::string printable(std::string_view text, std::size_t limit) {
  std::string shown;
  for (const char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f)
      shown += c;
    else
      shown += fmt::format("\\x{:02x}", byte);
  }
  if (text.size() > limit)
    shown += "...";
  return shown;
}

} // namespace troupe::compute
