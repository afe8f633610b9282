#pragma once
// Reads what one rank owns of a model folder, and nothing else: every byte is counted, and every
// part gets a digest while it is read.

#include "compute/device.hpp"
#include "compute/model.hpp"
#include "compute/weights/mapped_file.hpp"
#include "compute/weights/tensor_index.hpp"
#include "config/result.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace troupe::compute {

/// Used by one thread. Files are mapped when the first part of them is read.
class shard_reader {
public:
  /// The index has to outlive the reader.
  shard_reader(std::filesystem::path folder, const tensor_index& index);

  /// One owned part of a tensor, in place in its file.
  struct part {
    weight_source source; ///< Its owner keeps the file mapped.
    digest128 digest;     ///< Of the part's bytes, row by row.
  };

  /// Where the part lies in its file; reads nothing.
  result<weight_source> locate(const owned_tensor& owned);

  /// Reads all bytes of the part. Errors: the tensor or its file is gone or has changed.
  result<part> read(const owned_tensor& owned);

  /// Gives back the memory of a part that will not be looked at again.
  void release(const owned_tensor& owned);

  std::size_t bytes_read() const noexcept { return bytes_read_; }

private:
  result<std::shared_ptr<const mapped_file>> map(const std::string& file);

  std::filesystem::path folder_;
  const tensor_index& index_;
  std::map<std::string, std::shared_ptr<const mapped_file>> files_;
  std::size_t bytes_read_ = 0;
};

} // namespace troupe::compute
