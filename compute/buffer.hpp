#pragma once
// An owned region of memory, and views of it.

#include "config/result.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace troupe::compute {

/// Shared owner of a region of bytes. Copies share the region; the last one frees it. The region is
/// aligned to 64 bytes when Troupe allocated it. Any thread may hold a buffer; who writes to it is
/// agreed between the holders (a buffer that was sent is not written again).
class buffer {
public:
  buffer() = default;

  /// A region with undefined content. Fails with out_of_memory, naming the size.
  static result<buffer> allocate(std::size_t bytes);

  /// A region of somebody else (a mapped file, a receive descriptor), kept alive by `owner`.
  static buffer adopt(std::byte* data, std::size_t bytes, std::shared_ptr<void> owner);

  std::byte* data() const noexcept { return data_; }

  std::size_t size() const noexcept { return size_; }

  explicit operator bool() const noexcept { return data_ != nullptr; }

  /// The region as an array of T; the size must be a multiple of sizeof(T), the address aligned.
  template <class T>
  std::span<T> as() const {
    check(size_ % sizeof(T) == 0, "a buffer is viewed as whole elements");
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }

private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::shared_ptr<void> owner_;
};

/// A view of rows of f32 values in the device's memory: element (r, c) is data[r * stride + c].
struct tensor {
  float* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t stride = 0;

  tensor() = default;

  tensor(float* first, std::size_t row_count, std::size_t column_count)
      : data(first), rows(row_count), columns(column_count), stride(column_count) {}

  tensor(float* first, std::size_t row_count, std::size_t column_count, std::size_t row_stride)
      : data(first), rows(row_count), columns(column_count), stride(row_stride) {}

  float* row(std::size_t index) const { return data + index * stride; }

  /// Columns [begin, begin + count) of each row.
  tensor slice(std::size_t begin, std::size_t count) const {
    return {data + begin, rows, count, stride};
  }
};

} // namespace troupe::compute
