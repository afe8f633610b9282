// What check_security_files (config/cluster_file.hpp) demands of the files under [security] and
// [serve].

#include "config/cluster_file.hpp"
#include "config/source_mark.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {

namespace {

constexpr long least_secret_bytes = 16;

// Whom a file may be open to.
enum class audience { everyone, owner_and_group };

void check_file(const cluster_settings& settings,
                std::string_view full_name,
                const std::filesystem::path& file,
                audience readers,
                mistakes& found) {
  const auto name = full_name.substr(full_name.find('.') + 1);
  const auto complain = [&](std::string_view what, std::string_view remedy) {
    found.add(
      settings.point_at(full_name, fmt::format("{} {}: {}", name, file.string(), what), remedy));
  };

  struct stat status {};

  if (::stat(file.c_str(), &status) != 0)
    return complain(std::strerror(errno), "an existing file");
  if (!S_ISREG(status.st_mode))
    return complain("not a file", "an existing file");
  if (::access(file.c_str(), R_OK) != 0)
    return complain("cannot be read", "readable for the user that runs the node");
  if (readers == audience::owner_and_group && (status.st_mode & (S_IROTH | S_IWOTH)) != 0)
    return complain("every user of this host can read or change it",
                    fmt::format("chmod 600 {}", file.string()));
  if (name == "secret_file" && status.st_size < least_secret_bytes)
    complain(fmt::format("{} bytes", status.st_size),
             "at least 16, such as: head -c 32 /dev/urandom | base64");
}

} // namespace

result<void> check_security_files(const cluster_settings& settings) {
  const auto& security = settings.security;
  mistakes found;
  if (security.has_secret())
    check_file(
      settings, "security.secret_file", security.secret_file, audience::owner_and_group, found);
  if (security.has_certificates()) {
    check_file(settings, "security.certificate", security.certificate, audience::everyone, found);
    check_file(settings, "security.key", security.key, audience::owner_and_group, found);
    check_file(settings, "security.authority", security.authority, audience::everyone, found);
  }
  if (!found.none())
    return found.to_error();
  return {};
}

result<void> check_serve_files(const cluster_settings& settings) {
  const auto& serve = settings.serve;
  mistakes found;
  if (!serve.keys_file.empty())
    check_file(settings, "serve.keys_file", serve.keys_file, audience::owner_and_group, found);
  if (serve.has_certificate()) {
    check_file(settings, "serve.certificate", serve.certificate, audience::everyone, found);
    check_file(settings, "serve.key", serve.key, audience::owner_and_group, found);
  }
  if (!found.none())
    return found.to_error();
  return {};
}

} // namespace troupe
