#include "compute/weights/shard_reader.hpp"

#include <fmt/core.h>

namespace troupe::compute {
namespace {

/// Where the rows of a part lie in its file.
struct placement {
  std::size_t first = 0;  ///< Byte of element (0, 0) of the part.
  std::size_t stride = 0; ///< Bytes from row to row.
  std::size_t row = 0;    ///< Bytes of one row of the part.
  std::size_t rows = 0;
};

placement place(const stored_tensor& tensor, const owned_tensor& owned) {
  const auto element = size_of(owned.stored);
  const auto columns = tensor.shape.back();
  return {.first = tensor.offset + (owned.rows.begin * columns + owned.columns.begin) * element,
          .stride = columns * element,
          .row = owned.columns.size() * element,
          .rows = owned.rows.size()};
}

} // namespace

shard_reader::shard_reader(std::filesystem::path folder, const tensor_index& index)
  : folder_(std::move(folder)), index_(index) {}

result<std::shared_ptr<const mapped_file>> shard_reader::map(const std::string& file) {
  auto& mapped = files_[file];
  if (!mapped) {
    auto opened = mapped_file::open(folder_ / file);
    if (!opened)
      return opened.error();
    mapped = *std::move(opened);
  }
  return mapped;
}

result<weight_source> shard_reader::locate(const owned_tensor& owned) {
  auto found = index_.find(owned.name);
  if (!found)
    return found.error();
  auto file = map(owned.file);
  if (!file)
    return with_context(fmt::format("tensor '{}'", owned.name), file.error());
  const auto& tensor = (*found)->tensor;
  const auto bytes = (*file)->bytes();
  if (bytes.size() < tensor.offset + tensor.bytes)
    return error{errc::io_error,
                 fmt::format("{}: was cut while it was in use; tensor '{}' lies beyond its end",
                             (*file)->path().string(),
                             owned.name)};
  return weight_source{.data = bytes.data() + place(tensor, owned).first,
                       .stored = owned.stored,
                       .rows = owned.rows.size(),
                       .columns = owned.columns.size(),
                       .stride = tensor.shape.back(),
                       .owner = std::const_pointer_cast<mapped_file>(*file)};
}

result<shard_reader::part> shard_reader::read(const owned_tensor& owned) {
  auto source = locate(owned);
  if (!source)
    return source.error();
  const auto element = size_of(source->stored);
  const auto row = source->columns * element;
  digest_stream digest;
  if (source->stride == source->columns)
    digest.add({source->data, source->rows * row});
  else
    for (std::size_t i = 0; i < source->rows; ++i)
      digest.add({source->data + i * source->stride * element, row});
  bytes_read_ += source->rows * row;
  return part{.source = *std::move(source), .digest = digest.digest()};
}

void shard_reader::release(const owned_tensor& owned) {
  const auto found = index_.find(owned.name);
  const auto file = files_.find(owned.file);
  if (!found || file == files_.end() || !file->second)
    return;
  const auto where = place((*found)->tensor, owned);
  // A slice of columns shares its pages with the slices of other ranks: all of its rows go at once.
  file->second->release(where.first, (where.rows - 1) * where.stride + where.row);
}

} // namespace troupe::compute
