#include "config/section_reader.hpp"

#include "config/nearest.hpp"
#include "config/toml_screen.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

namespace troupe {

namespace fs = std::filesystem;

fs::path folder_of(std::string_view file) {
  std::error_code ignored; // An unknown working directory leaves paths relative.
  const auto absolute = fs::absolute(fs::path{file}, ignored);
  return absolute.parent_path();
}

result<std::string> read_toml_file(const fs::path& file, std::string_view kind) {
  std::error_code failure;
  const auto status = fs::status(file, failure);
  if (!fs::exists(status))
    return error{errc::not_found,
                 fmt::format("{}: there is no such file{}",
                             file.string(),
                             failure && failure != std::errc::no_such_file_or_directory
                               ? " (" + failure.message() + ")"
                               : "")};
  if (fs::is_directory(status))
    return error{errc::invalid_config,
                 fmt::format("{}: this is a folder, not {}", file.string(), kind)};
  // A pipe or a terminal is fine, but an endless one (/dev/zero) must end: read one byte too many.
  std::ifstream stream{file, std::ios::binary};
  std::string text(toml_bounds{}.text_bytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || (!stream.eof() && stream.gcount() == 0))
    return error{errc::io_error,
                 fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno))};
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

section_reader::section_reader(std::string_view file,
                               std::vector<setting_section> every_section,
                               mistakes& found)
  : file_(file), folder_(folder_of(file)), every_section_(std::move(every_section)), found_(found) {
}

void section_reader::check_names(const toml_value& file, std::string_view kind) {
  std::vector<std::string_view> known;
  for (const auto& section : every_section_)
    known.push_back(section.name);
  for (const auto& member : std::get<toml_value::table>(file.content)) {
    if (std::find(known.begin(), known.end(), member.key) != known.end())
      continue;
    found_.add(point(
      member.key_mark,
      fmt::format("there is no [{}] in {}; it has {}", member.key, kind, fmt::join(known, ", ")),
      guess(member.key, known, {})));
  }
}

// "did you mean ...": the nearest key of this table, else the table that has such a key.
std::string section_reader::guess(std::string_view key,
                                  std::span<const std::string_view> known,
                                  std::string_view own_section) const {
  if (const auto near = nearest(key, known); !near.empty())
    return fmt::format("did you mean \"{}\"?", near);
  for (const auto& section : every_section_)
    for (const auto& candidate : section.settings)
      if (candidate.name == key && section.name != own_section)
        return fmt::format("a key of {}", header_of(section.name));
  return "not known";
}

void section_reader::read(const setting_section& section, const toml_value& value) {
  const auto* members = std::get_if<toml_value::table>(&value.content);
  if (!members) {
    found_.add(point(value.mark,
                     fmt::format("{} is a table, not {}", section.name, value.kind()),
                     fmt::format("write {} on a line of its own", header_of(section.name))));
    return;
  }
  for (const auto& member : *members)
    read_member(section, member);
  demand_required(section, value.mark, members);
}

void section_reader::read_member(const setting_section& section, const toml_value::member& member) {
  std::vector<std::string_view> known;
  for (const auto& key : section.settings) {
    if (key.name == member.key) {
      read_value(section, key, member.value);
      return;
    }
    known.push_back(key.name);
  }
  found_.add(point(member.key_mark,
                   fmt::format("{} has no key \"{}\"; it has {}",
                               header_of(section.name),
                               member.key,
                               fmt::join(known, ", ")),
                   guess(member.key, known, section.name)));
}

void section_reader::read_value(const setting_section& section,
                                const setting& key,
                                const toml_value& value) {
  const auto full_name = fmt::format("{}{}", section.prefix, key.name);
  std::error_code ignored;
  const auto folder = value.mark.on_command_line() ? fs::current_path(ignored) : folder_;
  if (auto done = read_setting(key, full_name, value, folder); !done)
    found_.add(done.error().what);
  else
    origins_.insert_or_assign(full_name, value.mark);
}

void section_reader::demand_required(const setting_section& section) {
  demand_required(section, {}, nullptr);
}

void section_reader::demand_required(const setting_section& section,
                                     const source_mark& where,
                                     const toml_value::table* members) {
  for (const auto& key : section.settings) {
    const auto given = [&](const toml_value::member& member) { return member.key == key.name; };
    if (!key.required || (members && std::any_of(members->begin(), members->end(), given)))
      continue;
    const auto message = fmt::format(
      "{} must have the key \"{}\": {}", header_of(section.name), key.name, accepted(key));
    found_.add(members ? point(where, message, fmt::format("{} = ...", key.name))
                       : fmt::format("{}: {}", file_, message));
  }
}

} // namespace troupe
