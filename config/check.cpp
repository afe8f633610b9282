#include "config/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace troupe {

void check_failed(std::string_view invariant, const std::source_location& where) {
  std::fprintf(stderr,
               "troupe: broken invariant: %.*s (%s:%u, %s)\n",
               static_cast<int>(invariant.size()),
               invariant.data(),
               where.file_name(),
               where.line(),
               where.function_name());
  std::fflush(stderr);
  std::abort();
}

} // namespace troupe
