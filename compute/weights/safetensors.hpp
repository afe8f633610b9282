#pragma once
// The header of a safetensors file: which tensors lie where. Format: 8 bytes little-endian length
// of the header, the header as JSON, then the bytes of all tensors without gaps
// (https://github.com/huggingface/safetensors, README, "Format").

#include "config/dtype.hpp"
#include "config/result.hpp"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::compute {

/// One tensor of a file.
struct stored_tensor {
  std::string name;
  std::string type_name;          ///< As the file writes it, for example "BF16".
  std::optional<dtype> type = {}; ///< Nothing for element types that layers do not compute with.
  std::vector<std::size_t> shape = {};
  std::size_t offset = 0; ///< Of its first byte, from the start of the file.
  std::size_t bytes = 0;
};

/// The name of a type in safetensors files: "F32", "F16", "BF16".
std::string_view safetensors_name(dtype type) noexcept;

/// Largest header that is accepted; the limit of the reference implementation.
inline constexpr std::size_t max_safetensors_header = 100'000'000;

/// Reads the header of `file`; no weight byte is touched. Tensors come in the order of their bytes.
/// Refuses with invalid_model, naming the file and the tensor: Git-LFS pointers and other files
/// that are no model, lengths and ranges beyond the file, overlaps and gaps, shapes that do not fit
/// the bytes, names that occur twice, unknown types, JSON that is broken or nested deeper than the
/// format allows.
result<std::vector<stored_tensor>> read_safetensors_header(const std::filesystem::path& file);

/// The same for bytes in memory; `name` stands for the file in messages.
result<std::vector<stored_tensor>> parse_safetensors_header(std::span<const std::byte> bytes,
                                                            std::string_view name);

} // namespace troupe::compute
