#pragma once
// Tables of a TOML file into settings: unknown keys, wrong values and missing keys become mistakes
// that point at the file. What cluster files and scenarios have in common.

#include "config/result.hpp"
#include "config/settings_table.hpp"
#include "config/source_mark.hpp"
#include "config/toml_reader.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The folder of a file, where its relative paths start.
std::filesystem::path folder_of(std::string_view file);

/// The text of a file, up to one byte more than a TOML file may have. `kind` is "a cluster file".
/// Errors: not_found, io_error, invalid_config for a folder.
result<std::string> read_toml_file(const std::filesystem::path& file, std::string_view kind);

class section_reader {
public:
  /// `every_section` lists all that the file may have, for guesses at what was meant. The mistakes
  /// outlive the reader.
  section_reader(std::string_view file,
                 std::vector<setting_section> every_section,
                 mistakes& found);

  /// Complains about tables of the file that there are not. `kind` is "a cluster file".
  void check_names(const toml_value& file, std::string_view kind);

  /// Reads one table into the settings of `section`.
  void read(const setting_section& section, const toml_value& value);

  /// For a section that the file does not have.
  void demand_required(const setting_section& section);

  /// Where each key that was read came from, by its full name.
  const std::map<std::string, source_mark, std::less<>>& origins() const { return origins_; }

private:
  std::string guess(std::string_view key,
                    std::span<const std::string_view> known,
                    std::string_view own_section) const;
  void read_member(const setting_section& section, const toml_value::member& member);
  void read_value(const setting_section& section, const setting& key, const toml_value& value);
  void demand_required(const setting_section& section,
                       const source_mark& where,
                       const toml_value::table* members);

  std::string file_;
  std::filesystem::path folder_;
  std::vector<setting_section> every_section_;
  mistakes& found_;
  std::map<std::string, source_mark, std::less<>> origins_;
};

} // namespace troupe
