#include "compute/weights/safetensors.hpp"

#include "compute/weights/mapped_file.hpp"
#include "compute/weights/printable.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <set>

namespace troupe::compute {
namespace {

using nlohmann::json;

struct element_type {
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<element_type, 15> known_types{{{"F64", 8},
                                                    {"F32", 4},
                                                    {"F16", 2},
                                                    {"BF16", 2},
                                                    {"I64", 8},
                                                    {"I32", 4},
                                                    {"I16", 2},
                                                    {"I8", 1},
                                                    {"U64", 8},
                                                    {"U32", 4},
                                                    {"U16", 2},
                                                    {"U8", 1},
                                                    {"BOOL", 1},
                                                    {"F8_E4M3", 1},
                                                    {"F8_E5M2", 1}}};

error refuse(std::string_view file, std::string sentence) {
  return {errc::invalid_model, fmt::format("{}: {}", file, sentence)};
}

/// What the first bytes say when they cannot be those of a safetensors file.
std::optional<error> foreign_file(std::span<const std::byte> bytes, std::string_view file) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("version https://git-lfs"))
    return refuse(file,
                  "this is a Git-LFS pointer, not the weights: the folder was cloned without "
                  "large-file support; run 'git lfs pull' in it or download the file itself");
  if (bytes.size() < 8)
    return refuse(file,
                  fmt::format("not a model file: only {} bytes long; first bytes '{}'",
                              bytes.size(),
                              printable(text)));
  if (text.size() > 8 && text[8] == '{')
    return std::nullopt;
  return refuse(file,
                fmt::format("not a model file: a safetensors header starts with '{{' at byte 8; "
                            "first bytes '{}'",
                            printable(text.substr(0, 32))));
}

/// Parses the JSON of a header. The parser keeps the last of two equal keys, so they are caught
/// here.
result<json> parse_json(std::string_view text, std::string_view file) {
  std::string twice;
  bool too_deep = false;
  std::array<std::set<std::string>, 4> seen;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    // The root is depth 0, a tensor's object 1, its lists 2: nothing lies deeper.
    if (depth > 3) {
      too_deep = true;
      return false;
    }
    const auto level = static_cast<std::size_t>(depth);
    if (event == json::parse_event_t::object_start && level + 1 < seen.size())
      seen[level + 1].clear();
    if (event == json::parse_event_t::key
        && !seen[level].insert(parsed.get_ref<const std::string&>()).second)
      twice = parsed.get_ref<const std::string&>();
    return true;
  };
  json header;
  try {
    header = json::parse(text.begin(), text.end(), watch);
  } catch (const json::exception& failure) {
    return refuse(file, fmt::format("the header is not JSON: {}", printable(failure.what(), 200)));
  }
  if (too_deep)
    return refuse(file, "the header is nested deeper than the format allows");
  if (!twice.empty())
    return refuse(file, fmt::format("'{}' is described twice", printable(twice)));
  if (!header.is_object())
    return refuse(file, "the header is not a JSON object");
  return header;
}

result<std::vector<std::size_t>> read_sizes(const json& list) {
  std::vector<std::size_t> sizes;
  if (!list.is_array())
    return error{errc::invalid_model, "is not a list"};
  for (const auto& item : list) {
    if (!item.is_number_unsigned())
      return error{errc::invalid_model, "holds something that is not a non-negative integer"};
    sizes.push_back(item.get<std::size_t>());
  }
  return sizes;
}

std::optional<dtype> compute_type(std::string_view name) {
  for (const auto type : {dtype::f32, dtype::f16, dtype::bf16})
    if (safetensors_name(type) == name)
      return type;
  return std::nullopt;
}

/// Bytes that a shape of such elements takes; nothing when that overflows.
std::optional<std::size_t> bytes_of(const std::vector<std::size_t>& shape, std::size_t element) {
  std::size_t bytes = element;
  for (const auto size : shape)
    if (__builtin_mul_overflow(bytes, size, &bytes))
      return std::nullopt;
  return bytes;
}

/// One entry of the header; `data` is the size of the region of weights, ranges are relative to it.
result<stored_tensor>
read_entry(const std::string& name, const json& entry, std::size_t data, std::string_view file) {
  const auto bad = [&](std::string sentence) {
    return refuse(file, fmt::format("tensor '{}': {}", printable(name), sentence));
  };
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape")
      || !entry.contains("data_offsets") || !entry["dtype"].is_string())
    return bad("needs dtype, shape and data_offsets");
  stored_tensor tensor{.name = name, .type_name = entry["dtype"].get<std::string>()};
  const auto known = std::find_if(known_types.begin(), known_types.end(), [&](const auto& type) {
    return type.name == tensor.type_name;
  });
  if (known == known_types.end())
    return bad(fmt::format("element type '{}' is not known; F32, F16 and BF16 are what layers read",
                           printable(tensor.type_name)));
  tensor.type = compute_type(tensor.type_name);
  auto shape = read_sizes(entry["shape"]);
  if (!shape)
    return bad(fmt::format("shape {}", shape.error().what));
  tensor.shape = *std::move(shape);
  auto ends = read_sizes(entry["data_offsets"]);
  if (!ends || ends->size() != 2)
    return bad("data_offsets is not a pair of non-negative integers");
  const auto [begin, end] = std::pair((*ends)[0], (*ends)[1]);
  if (begin > end || end > data)
    return bad(fmt::format("its bytes [{}, {}) lie outside of the file's {} bytes of weights; the "
                           "file is damaged or was not downloaded to its end",
                           begin,
                           end,
                           data));
  const auto needed = bytes_of(tensor.shape, known->bytes);
  if (!needed || *needed != end - begin)
    return bad(fmt::format("shape {} of {} needs {} bytes, but its range holds {}",
                           entry["shape"].dump(),
                           tensor.type_name,
                           needed ? std::to_string(*needed) : "too many",
                           end - begin));
  tensor.offset = begin;
  tensor.bytes = end - begin;
  return tensor;
}

/// The format wants the weights covered exactly once.
result<void>
check_cover(const std::vector<stored_tensor>& sorted, std::size_t data, std::string_view file) {
  std::size_t next = 0;
  const stored_tensor* before = nullptr;
  for (const auto& tensor : sorted) {
    if (tensor.offset < next)
      return refuse(file,
                    fmt::format("tensors '{}' and '{}' overlap",
                                printable(before->name),
                                printable(tensor.name)));
    if (tensor.offset > next)
      return refuse(file,
                    fmt::format("{} bytes before tensor '{}' belong to no tensor",
                                tensor.offset - next,
                                printable(tensor.name)));
    next = tensor.offset + tensor.bytes;
    before = &tensor;
  }
  if (next != data)
    return refuse(
      file, fmt::format("the header describes {} bytes of weights, the file holds {}", next, data));
  return {};
}

} // namespace

std::string_view safetensors_name(dtype type) noexcept {
  switch (type) {
  case dtype::f32: return "F32";
  case dtype::f16: return "F16";
  case dtype::bf16: return "BF16";
  case dtype::int8:
  case dtype::int4: break; // Never stored.
  }
  return "unknown";
}

result<std::vector<stored_tensor>> parse_safetensors_header(std::span<const std::byte> bytes,
                                                            std::string_view name) {
  if (auto foreign = foreign_file(bytes, name))
    return *foreign;
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i)
    length |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  if (length > max_safetensors_header || length > bytes.size() - 8)
    return refuse(name,
                  fmt::format("the header claims {} bytes; the file has {} bytes after the length "
                              "and {} is the most that is accepted",
                              length,
                              bytes.size() - 8,
                              max_safetensors_header));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, length);
  auto header = parse_json(text, name);
  if (!header)
    return header.error();
  const auto data = bytes.size() - 8 - length;
  std::vector<stored_tensor> tensors;
  for (const auto& [key, entry] : header->items()) {
    if (key == "__metadata__")
      continue;
    auto tensor = read_entry(key, entry, data, name);
    if (!tensor)
      return tensor.error();
    tensors.push_back(*std::move(tensor));
  }
  std::sort(tensors.begin(), tensors.end(), [](const auto& left, const auto& right) {
    return std::pair(left.offset, left.bytes) < std::pair(right.offset, right.bytes);
  });
  if (auto covered = check_cover(tensors, data, name); !covered)
    return covered.error();
  for (auto& tensor : tensors)
    tensor.offset += 8 + length;
  return tensors;
}

result<std::vector<stored_tensor>> read_safetensors_header(const std::filesystem::path& file) {
  auto mapped = mapped_file::open(file);
  if (!mapped)
    return mapped.error();
  return parse_safetensors_header((*mapped)->bytes(), file.string());
}

} // namespace troupe::compute
