#include "tests/tidy/source_rules.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

namespace troupe::tidy {

namespace {

constexpr std::size_t most_lines = 500;
constexpr std::size_t most_columns = 100;
constexpr std::array<std::string_view, 5> folders{
  "config", "compute", "transport", "actors", "tests"};

/// A package, by how its includes begin, and the folders that may know it.
struct package {
  std::string_view prefix;
  std::vector<std::string_view> homes;
  bool heavy = false; ///< Slow to compile: in a .cpp, and alone.
};

const std::vector<package>& packages() {
  static const std::vector<package> all{
    {"caf/", {"actors/", "tests/"}},
    {"ucp/", {"transport/ucx/", "tests/"}},
    {"uct/", {"transport/ucx/", "tests/"}},
    {"ucs/", {"transport/ucx/", "tests/"}},
    {"cuda", {"compute/cuda/"}},
    {"nccl", {"compute/cuda/"}},
    {"hwy/", {"compute/cpu/", "compute/weights/", "tests/bench/"}},
    {"boost/test/", {"tests/"}},
    {"boost/asio", {"actors/serve/"}},
    {"boost/beast/", {"actors/serve/"}, true},
    {"rapidcheck", {"tests/"}},
    {"benchmark/", {"tests/bench/"}},
    {"nlohmann/", {"compute/", "actors/", "tests/"}, true},
    {"toml", {"config/"}, true},
    {"CLI/", {"actors/cli/"}, true},
    {"sentencepiece", {"compute/tokenizer/"}, true},
  };
  return all;
}

bool ends_with_any(std::string_view path, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](auto end) { return path.ends_with(end); });
}

bool is_code(std::string_view path) {
  return ends_with_any(path, {".hpp", ".cpp", ".cu", ".cuh"});
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

/// Place of a folder in the house; nothing for a file that lies outside of it.
std::optional<std::size_t> floor_of(std::string_view path) {
  const auto folder = path.substr(0, path.find('/'));
  const auto found = std::find(folders.begin(), folders.end(), folder);
  if (found == folders.end())
    return std::nullopt;
  return static_cast<std::size_t>(found - folders.begin());
}

struct include {
  std::string path;
  bool quoted = false;
};

std::optional<include> include_of(std::string_view line) {
  constexpr std::string_view word = "#include";
  if (!line.starts_with(word))
    return std::nullopt;
  line.remove_prefix(word.size());
  const auto begin = line.find_first_of("\"<");
  if (begin == std::string_view::npos)
    return std::nullopt; // a macro, as Highway wants it
  const bool quoted = line[begin] == '"';
  const auto end = line.find(quoted ? '"' : '>', begin + 1);
  return include{std::string(line.substr(begin + 1, end - begin - 1)), quoted};
}

std::string
own_include_mistake(const source& file, const std::string& path, const exists& in_tree) {
  const bool is_there = in_tree(path) || in_tree(path + ".in"); // made when the build is configured
  if (!floor_of(path) || !is_there)
    return "\"" + path + "\" is not written from the root, or is not there";
  const auto here = floor_of(file.path);
  if (here && *floor_of(path) > *here)
    return std::string(folders[*here]) + " includes " + path
           + "; the direction is config <- compute <- transport <- actors <- tests";
  return {};
}

/// Headers that say of themselves that they are heavy, and that only files of their folder include.
constexpr std::array<std::string_view, 2> inner_heavy_headers{"actors/serve/json_values.hpp",
                                                              "compute/tokenizer/model_file.hpp"};

bool may_be_heavy(std::string_view path) {
  return std::find(inner_heavy_headers.begin(), inner_heavy_headers.end(), path)
         != inner_heavy_headers.end();
}

std::string package_mistake(const source& file, const std::string& path, const package& which) {
  const auto at_home = [&](std::string_view home) { return file.path.starts_with(home); };
  if (std::none_of(which.homes.begin(), which.homes.end(), at_home))
    return "<" + path + "> is known in " + std::string(which.homes.front()) + " only";
  if (which.heavy && file.path.ends_with(".hpp") && !may_be_heavy(file.path))
    return "<" + path + "> in a header slows everybody down; hide it behind a light header";
  return {};
}

std::size_t columns_of(std::string_view line) {
  return static_cast<std::size_t>(
    std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string lowered(std::string_view text) {
  std::string made(text);
  std::transform(
    made.begin(), made.end(), made.begin(), [](unsigned char c) { return std::tolower(c); });
  return made;
}

constexpr std::array<std::string_view, 8> empty_words{
  "utils", "util", "helpers", "helper", "common", "manager", "misc", "stuff"};

/// The part of a name, between '_' and '-', that says nothing.
std::string_view empty_word_in(std::string_view name) {
  for (const auto word : empty_words) {
    for (auto at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
      const auto edge = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; };
      const auto end = at + word.size();
      if ((at == 0 || edge(name[at - 1])) && (end == name.size() || edge(name[end])))
        return word;
    }
  }
  return {};
}

} // namespace

std::vector<finding> check_includes(const source& file, const exists& in_tree) {
  std::vector<finding> found;
  std::string heavy;
  const auto lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto read = include_of(lines[i]);
    if (!read)
      continue;
    const auto note = [&](std::string what) {
      if (!what.empty())
        found.push_back({i + 1, std::move(what)});
    };
    if (read->quoted) {
      note(own_include_mistake(file, read->path, in_tree));
      continue;
    }
    for (const auto& which : packages()) {
      if (!read->path.starts_with(which.prefix))
        continue;
      note(package_mistake(file, read->path, which));
      if (which.heavy && !heavy.empty() && heavy != which.prefix)
        note("a second heavy header beside " + heavy + "; one to a file");
      if (which.heavy)
        heavy = which.prefix;
    }
  }
  if (file.path.ends_with(".hpp") && !file.path.ends_with("-inl.hpp")
      && file.text.find("#pragma once") == std::string_view::npos)
    found.push_back({0, "a header without #pragma once"});
  return found;
}

std::vector<finding> check_length(const source& file) {
  std::vector<finding> found;
  const auto lines = lines_of(file.text);
  if (lines.size() > most_lines)
    found.push_back({0, std::to_string(lines.size()) + " lines; at most 500, 300 are wished"});
  bool is_table = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find("clang-format off") != std::string_view::npos)
      is_table = true;
    if (lines[i].find("clang-format on") != std::string_view::npos)
      is_table = false;
    if (const auto columns = columns_of(lines[i]); columns > most_columns && !is_table)
      found.push_back({i + 1, std::to_string(columns) + " columns; at most 100"});
  }
  return found;
}

std::vector<finding> check_names(const source& file) {
  std::vector<finding> found;
  if (const auto word = empty_word_in(lowered(file.path)); !word.empty())
    found.push_back({0, "\"" + std::string(word) + "\" in a path says nothing"});
  if (!is_code(file.path))
    return found;
  const auto lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto line = lines[i].substr(0, lines[i].find("//"));
    for (const std::string_view keyword : {"class ", "struct ", "namespace "}) {
      const auto at = line.find(keyword);
      if (at == std::string_view::npos || (at > 0 && line[at - 1] != ' '))
        continue;
      const auto rest = line.substr(at + keyword.size());
      const auto name = rest.substr(0, rest.find_first_of(" :<{;"));
      if (const auto word = empty_word_in(name); !word.empty())
        found.push_back({i + 1, "\"" + std::string(word) + "\" in a name says nothing"});
    }
  }
  return found;
}

std::vector<finding> check_machine_paths(const source& file) {
  static const std::array<std::string, 3> starts{
    std::string("/wo") + "rk/", std::string("/ro") + "ot/", std::string("/ho") + "me/"};
  std::vector<finding> found;
  const auto lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const auto& start : starts) {
      const auto at = lines[i].find(start);
      const bool inner =
        at != std::string_view::npos && at > 0
        && (std::isalnum(static_cast<unsigned char>(lines[i][at - 1])) != 0
            || std::string_view("_-./}$~").find(lines[i][at - 1]) != std::string_view::npos);
      if (at != std::string_view::npos && !inner)
        found.push_back({i + 1, "a path of one machine: " + start});
    }
  }
  return found;
}

std::vector<finding> check(const source& file, const exists& in_tree) {
  std::vector<finding> all = check_machine_paths(file);
  const auto add = [&](std::vector<finding> more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  add(check_names(file));
  if (is_code(file.path))
    add(check_includes(file, in_tree));
  if (is_code(file.path) || ends_with_any(file.path, {"CMakeLists.txt", ".cmake", ".py"}))
    add(check_length(file));
  return all;
}

} // namespace troupe::tidy
