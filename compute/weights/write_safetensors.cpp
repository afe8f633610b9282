#include "compute/weights/write_safetensors.hpp"

#include "compute/weights/safetensors.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace troupe::compute {
namespace {

error system_error(const std::filesystem::path& path, std::string_view doing) {
  return {errc::io_error,
          fmt::format("cannot {} {}: {}", doing, path.string(), std::strerror(errno))};
}

/// The header's text, padded so that the weights start at a multiple of 64 bytes.
result<std::string> make_header(std::span<const tensor_to_write> tensors) {
  auto header = nlohmann::ordered_json::object();
  header["__metadata__"] = {{"format", "pt"}};
  std::size_t next = 0;
  for (const auto& tensor : tensors) {
    if (header.contains(tensor.name))
      return error{errc::invalid_argument,
                   fmt::format("tensor '{}' is to be written twice", tensor.name)};
    header[tensor.name] = {{"dtype", safetensors_name(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {next, next + tensor.bytes()}}};
    next += tensor.bytes();
  }
  auto text = header.dump();
  text.append(63 - (8 + text.size() + 63) % 64, ' ');
  return text;
}

} // namespace

std::size_t tensor_to_write::bytes() const {
  auto bytes = size_of(type);
  for (const auto size : shape)
    bytes *= size;
  return bytes;
}

safetensors_writer::safetensors_writer(std::filesystem::path path, int descriptor)
  : path_(std::move(path)), descriptor_(descriptor) {}

safetensors_writer::safetensors_writer(safetensors_writer&& other) noexcept
  : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)),
    begins_(std::move(other.begins_)) {}

safetensors_writer::~safetensors_writer() {
  if (descriptor_ < 0)
    return;
  ::close(descriptor_);
  std::error_code ignored;
  std::filesystem::remove(partial(), ignored);
}

std::filesystem::path safetensors_writer::partial() const {
  return path_.string() + ".partial";
}

result<safetensors_writer> safetensors_writer::create(const std::filesystem::path& path,
                                                      std::span<const tensor_to_write> tensors) {
  auto text = make_header(tensors);
  if (!text)
    return text.error();
  const auto name = path.string() + ".partial";
  const int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0)
    return system_error(name, "create");
  safetensors_writer writer(path, descriptor);
  auto next = 8 + text->size();
  for (const auto& tensor : tensors) {
    writer.begins_.push_back(next);
    next += tensor.bytes();
  }
  writer.begins_.push_back(next);
  std::array<std::byte, 8> length{};
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<std::byte>(std::uint64_t{text->size()} >> (8 * i));
  if (auto done = writer.write_at(0, length); !done)
    return done.error();
  if (auto done = writer.write_at(8, std::as_bytes(std::span(*text))); !done)
    return done.error();
  // A tensor that nobody writes is zeros, and the file has its full length in any case.
  if (::ftruncate(descriptor, static_cast<off_t>(next)) != 0)
    return system_error(name, "extend");
  return writer;
}

result<void> safetensors_writer::write_at(std::size_t offset,
                                          std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const auto written =
      ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return system_error(partial(), "write to");
    offset += static_cast<std::size_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

result<void> safetensors_writer::write(std::size_t index,
                                       std::size_t offset,
                                       std::span<const std::byte> bytes) const {
  check(index + 1 < begins_.size(), "a tensor of the header is written");
  check(offset + bytes.size() <= begins_[index + 1] - begins_[index],
        "bytes are written inside of their tensor");
  return write_at(begins_[index] + offset, bytes);
}

result<void> safetensors_writer::finish() {
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0)
    return system_error(partial(), "close");
  std::error_code code;
  std::filesystem::rename(partial(), path_, code);
  if (code)
    return error{errc::io_error, fmt::format("cannot name {}: {}", path_.string(), code.message())};
  return {};
}

} // namespace troupe::compute
