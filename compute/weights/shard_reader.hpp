#pragma once
// Reads what one rank owns of a model folder, and nothing else: every byte is counted, and every
// part gets a digest while it is read.
//
// Memory: the pages of a mapped file that are resident count as memory of the process. They are
// brought in a slice of rows ahead of its packing and given back right after it, so that a rank
// takes what it holds and some slices, never a tensor twice.

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

/// One owned part of a tensor, in place in its file. Its rows are seen once, in order, by whoever
/// packs it: while they pass they are digested, and their pages come and go with them.
class shard_part final : public row_watcher {
public:
  /// Rows of `source` lie in `file` from byte `first` on.
  shard_part(std::shared_ptr<const mapped_file> file, std::size_t first, weight_source source);

  /// Watched by this part, and keeps the file mapped.
  const weight_source& source() const noexcept { return source_; }

  void expect(const range& rows) override;
  void pass(const range& rows) override;
  void release(const range& rows) override;

  /// All rows, for a source that nobody packs. Their pages go again.
  void pass_all();

  std::size_t bytes() const noexcept { return source_.rows * row_bytes_; }

  /// Of the part's bytes, row by row; all rows have passed.
  digest128 digest() const;

private:
  /// Bytes of the file from the first of these rows to the end of the last one. A slice of columns
  /// shares its pages with those of other ranks, each of which maps the file for itself.
  range place(const range& rows) const;

  std::shared_ptr<const mapped_file> file_;
  std::size_t first_;
  std::size_t stride_bytes_;
  std::size_t row_bytes_;
  weight_source source_;
  digest_stream digest_;
  std::size_t passed_ = 0; ///< Rows.
};

/// Used by one thread. Files are mapped when the first part of them is read.
class shard_reader {
public:
  /// The index has to outlive the reader.
  shard_reader(std::filesystem::path folder, const tensor_index& index);

  /// Where the part lies in its file; reads nothing.
  result<weight_source> locate(const owned_tensor& owned);

  /// The part, all of whose bytes will be read. Errors: the tensor or its file is gone or has
  /// changed.
  result<std::unique_ptr<shard_part>> open(const owned_tensor& owned);

  std::size_t bytes_read() const noexcept { return bytes_read_; }

private:
  result<std::shared_ptr<const mapped_file>> map(const std::string& file);

  std::filesystem::path folder_;
  const tensor_index& index_;
  std::map<std::string, std::shared_ptr<const mapped_file>> files_;
  std::size_t bytes_read_ = 0;
};

} // namespace troupe::compute
