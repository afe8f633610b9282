#include "compute/weights/model_files.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace troupe::compute {
namespace {

constexpr std::string_view extension = ".safetensors";

/// "model-00002-of-00003.safetensors" is part 2 of 3 of "model".
struct part_name {
  std::string stem;
  std::size_t index = 0;
  std::size_t total = 0;
};

std::optional<std::size_t> five_digits(std::string_view text) {
  std::size_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc{} && end == text.data() + text.size() && text.size() == 5
           ? std::optional(value)
           : std::nullopt;
}

std::optional<part_name> parse_part(std::string_view file) {
  constexpr std::size_t tail = 15; // -00002-of-00003
  if (!file.ends_with(extension) || file.size() <= extension.size() + tail)
    return std::nullopt;
  file.remove_suffix(extension.size());
  const auto numbers = file.substr(file.size() - tail);
  const auto index = five_digits(numbers.substr(1, 5));
  const auto total = five_digits(numbers.substr(10, 5));
  if (numbers[0] != '-' || numbers.substr(6, 4) != "-of-" || !index || !total || *index == 0
      || *index > *total)
    return std::nullopt;
  return part_name{std::string(file.substr(0, file.size() - tail)), *index, *total};
}

std::string name_part(const std::string& stem, std::size_t index, std::size_t total) {
  return fmt::format("{}-{:05}-of-{:05}{}", stem, index, total, extension);
}

result<std::vector<std::string>> list_files(const std::filesystem::path& folder) {
  std::error_code code;
  std::vector<std::string> names;
  std::filesystem::directory_iterator entries(folder, code);
  if (code)
    return error{code == std::errc::no_such_file_or_directory ? errc::not_found : errc::io_error,
                 fmt::format("cannot list model folder {}: {}", folder.string(), code.message())};
  for (const auto& entry : entries)
    if (!entry.is_directory(code))
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

error no_weights(const std::filesystem::path& folder, const std::vector<std::string>& names) {
  for (const std::string_view other : {".gguf", ".bin", ".pth", ".pt"})
    for (const auto& name : names)
      if (name.ends_with(other))
        return {errc::unsupported,
                fmt::format("{}: holds '{}', but no .safetensors file; only safetensors can be "
                            "read",
                            folder.string(),
                            name)};
  return {errc::not_found, fmt::format("{}: holds no .safetensors file", folder.string())};
}

/// The parts of the one numbered set in the folder, if there is exactly one.
result<std::vector<std::string>> find_parts(const std::filesystem::path& folder,
                                            const std::vector<std::string>& names) {
  std::map<std::pair<std::string, std::size_t>, std::size_t> sets;
  for (const auto& name : names)
    if (const auto part = parse_part(name))
      ++sets[{part->stem, part->total}];
  std::vector<std::string> parts;
  if (sets.empty())
    return parts;
  if (sets.size() > 1)
    return error{errc::invalid_model,
                 fmt::format("{}: holds parts of {} different sets and no index says which to "
                             "read; keep one set, for example {}",
                             folder.string(),
                             sets.size(),
                             name_part(sets.begin()->first.first, 1, sets.begin()->first.second))};
  const auto& [stem, total] = sets.begin()->first;
  for (std::size_t index = 1; index <= total; ++index)
    parts.push_back(name_part(stem, index, total));
  return parts;
}

} // namespace

result<model_files> find_model_files(const std::filesystem::path& folder) {
  auto names = list_files(folder);
  if (!names)
    return names.error();
  std::vector<std::string> indices;
  std::vector<std::string> weights;
  for (const auto& name : *names) {
    if (name.ends_with(".safetensors.index.json"))
      indices.push_back(name);
    if (name.ends_with(extension))
      weights.push_back(name);
  }
  const std::string usual = "model.safetensors.index.json";
  if (std::find(indices.begin(), indices.end(), usual) != indices.end())
    return model_files{usual, {}};
  if (indices.size() > 1)
    return error{errc::invalid_model,
                 fmt::format("{}: holds several indices: {}; keep one",
                             folder.string(),
                             fmt::join(indices, ", "))};
  if (indices.size() == 1)
    return model_files{indices.front(), {}};
  if (std::find(weights.begin(), weights.end(), "model.safetensors") != weights.end())
    return model_files{"", {"model.safetensors"}};
  auto parts = find_parts(folder, weights);
  if (!parts)
    return parts.error();
  if (!parts->empty())
    return model_files{"", *std::move(parts)};
  if (weights.size() == 1)
    return model_files{"", weights};
  if (weights.empty())
    return no_weights(folder, *names);
  return error{errc::invalid_model,
               fmt::format("{}: holds several .safetensors files and no index: {}; keep one or "
                           "add model.safetensors.index.json",
                           folder.string(),
                           fmt::join(weights, ", "))};
}

} // namespace troupe::compute
