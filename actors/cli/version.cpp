#include "actors/cli/version.hpp"

#include "actors/messages/membership.hpp"
#include "transport/frame.hpp"

#include <fmt/format.h>

namespace troupe::cli {

std::string version_text() {
  return fmt::format("troupe {}\nprotocol {}, wire {}, actor framework {}.{}.{}\ncuda: not built",
                     TROUPE_VERSION,
                     actors::protocol_version,
                     transport::wire_version,
                     CAF_MAJOR_VERSION,
                     CAF_MINOR_VERSION,
                     CAF_PATCH_VERSION);
}

} // namespace troupe::cli
