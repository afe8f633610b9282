#include "compute/weights/shard_reader.hpp"

#include "config/check.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace troupe::compute {

shard_part::shard_part(std::shared_ptr<const mapped_file> file,
                       std::size_t first,
                       weight_source source)
  : file_(std::move(file)), first_(first), stride_bytes_(source.stride * size_of(source.stored)),
    row_bytes_(source.columns * size_of(source.stored)), source_(std::move(source)) {
  source_.watcher = this;
}

range shard_part::place(const range& rows) const {
  return {first_ + rows.begin * stride_bytes_,
          first_ + (rows.end - 1) * stride_bytes_ + row_bytes_};
}

void shard_part::expect(const range& rows) {
  if (stride_bytes_ != row_bytes_)
    return; // What lies between is not ours; touches bring in what is.
  const auto where = place(rows);
  file_->populate(where.begin, where.size());
}

void shard_part::pass(const range& rows) {
  check(rows.begin == passed_, "the rows of a part pass in order");
  passed_ = rows.end;
  const auto* at = source_.data + rows.begin * stride_bytes_;
  if (stride_bytes_ == row_bytes_)
    return digest_.add({at, rows.size() * row_bytes_});
  for (std::size_t row = 0; row < rows.size(); ++row)
    digest_.add({at + row * stride_bytes_, row_bytes_});
}

void shard_part::release(const range& rows) {
  // Whole pages: those that a slice shares with its neighbours go with the part.
  const auto where = place(rows);
  file_->release(where.begin, where.size());
}

void shard_part::pass_all() {
  constexpr std::size_t slice_bytes = std::size_t{1} << 20;
  const auto slice_rows = std::max<std::size_t>(1, slice_bytes / stride_bytes_);
  for (std::size_t begin = 0; begin < source_.rows; begin += slice_rows) {
    const range rows{begin, std::min(begin + slice_rows, source_.rows)};
    expect(rows);
    pass(rows);
    release(rows);
  }
  release({0, source_.rows});
}

digest128 shard_part::digest() const {
  check(passed_ == source_.rows, "a part has its digest when all of its rows have passed");
  return digest_.digest();
}

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
  const auto columns = tensor.shape.back();
  const auto first =
    tensor.offset + (owned.rows.begin * columns + owned.columns.begin) * size_of(owned.stored);
  return weight_source{.data = bytes.data() + first,
                       .stored = owned.stored,
                       .rows = owned.rows.size(),
                       .columns = owned.columns.size(),
                       .stride = columns,
                       .owner = std::const_pointer_cast<mapped_file>(*file),
                       .name = fmt::format("tensor '{}'", owned.name)};
}

result<std::unique_ptr<shard_part>> shard_reader::open(const owned_tensor& owned) {
  auto source = locate(owned);
  if (!source)
    return source.error();
  const auto& file = files_.at(owned.file);
  const auto first = static_cast<std::size_t>(source->data - file->bytes().data());
  auto part = std::make_unique<shard_part>(file, first, *std::move(source));
  bytes_read_ += part->bytes();
  return part;
}

} // namespace troupe::compute
