#pragma once
// One key of the cluster file: where its value lives, what it accepts, why it exists; and its value
// as TOML in both directions. config/settings_table.hpp lists all of them.

#include "config/dtype.hpp"
#include "config/log.hpp"
#include "config/result.hpp"
#include "config/toml_reader.hpp"
#include "config/topology.hpp"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

/// A size in bytes that the file writes as "2GiB"; 0 is written "auto".
struct byte_count {
  std::uint64_t* bytes;
};

/// A string that must be one of a few.
struct choice {
  std::string* value;
  std::vector<std::string_view> known;
};

/// A path, relative to the file; the word `kept` is not a path and stays as it is.
struct path_slot {
  std::filesystem::path* path;
  std::string_view kept;
};

/// Where the value of a setting lives, which also says its type.
using setting_slot = std::variant<bool*,
                                  std::uint64_t*,
                                  byte_count,
                                  double*,
                                  std::string*,
                                  choice,
                                  path_slot,
                                  dtype*,
                                  std::optional<dtype>*,
                                  log::level*,
                                  std::vector<std::string>*,
                                  std::vector<range>*>;

/// Bounds of a number; with `above` the least value itself is out.
struct bounds {
  double least = 0;
  double most = std::numeric_limits<std::int64_t>::max();
  bool above = false;
};

struct setting {
  std::string_view name;   ///< As the file spells it, without its section.
  setting_slot slot;       ///< Points into a cluster_settings.
  std::string_view reason; ///< What it does, and why the default is what it is.
  bounds allowed = {};
  bool required = false;
};

/// What the key accepts, for messages and for the reference: "an integer from 1 to 64".
std::string accepted(const setting& key);

/// Takes the value over; paths become absolute, starting at `folder`. `full_name`
/// ("node[0].threads") is for messages. Error: invalid_config whose text points at the value.
result<void> read_setting(const setting& key,
                          std::string_view full_name,
                          const toml_value& value,
                          const std::filesystem::path& folder);

/// The present value as TOML: `4096`, `"2GiB"`, `[[0, 4], [4, 6]]`.
std::string write_setting(const setting& key);

} // namespace troupe
