#include "actors/cli/doctor.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace troupe::cli {

namespace {

void print(const char* verdict,
           std::string_view area,
           const std::string& found,
           const std::string& remedy) {
  fmt::print("{:<5} {:<10} {}\n", verdict, area, found);
  if (!remedy.empty())
    fmt::print("{:<16} -> {}\n", "", remedy);
  std::fflush(stdout);
}

} // namespace

void findings::ok(std::string_view area, const std::string& found) {
  print("ok", area, found, {});
}

void findings::warn(std::string_view area, const std::string& found, const std::string& remedy) {
  ++warnings_;
  print("warn", area, found, remedy);
}

void findings::fail(std::string_view area, const std::string& found, const std::string& remedy) {
  ++failures_;
  print("fail", area, found, remedy);
}

int run_doctor_command(const cluster_options& options) {
  const auto settings = read_cluster(options, security_files::ignore);
  if (!settings)
    return fail(settings.error());
  findings found;
  examine_host(*settings, found);
  examine_wires(*settings, found);
  examine_network(*settings, found);
  examine_model(*settings, found);
  fmt::print(
    "{}, {}\n", counted(found.failures(), "failure"), counted(found.warnings(), "warning"));
  return found.healthy() ? 0 : 1;
}

} // namespace troupe::cli
