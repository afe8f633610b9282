#pragma once
// Writes safetensors files (format: compute/weights/safetensors.hpp) with bounded memory: the
// header first, then the bytes of each tensor, in pieces and in any order.

#include "config/dtype.hpp"
#include "config/result.hpp"

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace troupe::compute {

struct tensor_to_write {
  std::string name;
  dtype type = dtype::f32;
  std::vector<std::size_t> shape;

  /// Bytes of the whole tensor.
  std::size_t bytes() const;
};

/// The file gets its name in finish(): until then it is "<path>.partial", which the destructor of
/// an unfinished writer removes. write() may be called from several threads at once.
class safetensors_writer {
public:
  /// Tensors are laid out in the order given; names must differ (invalid_argument). io_error names
  /// the path and the system's reason.
  static result<safetensors_writer> create(const std::filesystem::path& path,
                                           std::span<const tensor_to_write> tensors);

  ~safetensors_writer();
  safetensors_writer(safetensors_writer&& other) noexcept;
  safetensors_writer& operator=(safetensors_writer&&) = delete;

  /// Bytes of tensor `index` from `offset` on; they have to lie inside of it (check).
  result<void> write(std::size_t index, std::size_t offset, std::span<const std::byte> bytes) const;

  result<void> finish();

private:
  safetensors_writer(std::filesystem::path path, int descriptor);

  std::filesystem::path partial() const;
  result<void> write_at(std::size_t offset, std::span<const std::byte> bytes) const;

  std::filesystem::path path_;
  int descriptor_;
  std::vector<std::size_t> begins_; // of each tensor in the file, and the end of the last
};

} // namespace troupe::compute
