#pragma once
// The cluster file: strict reader of the TOML file that describes a cluster. Unknown keys, wrong
// types, values out of range and sums that cannot work are errors with file, line, source text and
// caret, several at a time, before anything is started. Any thread; no state.

#include "config/address.hpp"
#include "config/result.hpp"
#include "config/settings.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Whether the files that [security] names are looked at. `plan` and `config` work on a desk that
/// holds no secrets; what joins a cluster checks them.
enum class security_files { check, ignore };

/// Reads a cluster file of at most 256 KiB. `overrides` are "key=value" as they follow --set:
/// "model.context=4096", "node.a.threads=2", "node[0].threads=2"; a value that is not TOML is taken
/// as a string. Relative paths in the file are relative to its folder, those of overrides to the
/// working directory.
/// Errors: invalid_config with up to ten messages; not_found or io_error where the file cannot be
/// read.
result<cluster_settings> read_cluster_file(const std::filesystem::path& file,
                                           std::span<const std::string> overrides = {},
                                           security_files files = security_files::check);

/// As read_cluster_file, from memory; `name` is what messages call the text, and its folder is
/// where relative paths start. Does not look at the files of [security].
result<cluster_settings> parse_cluster_text(std::string_view text,
                                            std::string_view name,
                                            std::span<const std::string> overrides = {});

/// As parse_cluster_text, of a file with one [[node]] that is to join another cluster: its ranks
/// make as many stages here.
result<cluster_settings> parse_lone_node(std::string_view text,
                                         std::string_view name,
                                         std::span<const std::string> overrides = {});

/// The files of [security] exist, can be read, and the secret is long enough and private.
result<void> check_security_files(const cluster_settings& settings);

/// The files of [serve], which only the head needs: they can be read, and keys are private.
result<void> check_serve_files(const cluster_settings& settings);

/// The cluster file of the demo (config/examples/demo.toml), which is built into the program.
std::string_view demo_cluster_text() noexcept;

/// One effective setting, for `troupe config`.
struct setting_row {
  std::string key;    ///< "model.context", "node.a.threads".
  std::string value;  ///< As TOML.
  std::string origin; ///< "default", "cluster.toml:12" or "--set model.context=4096".
  std::string reason; ///< Why it exists and why the default is what it is.
};

/// Every setting in the order of docs/configuration.md, nodes one after the other.
std::vector<setting_row> describe_settings(const cluster_settings& settings);

} // namespace troupe
