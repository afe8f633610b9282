#include "compute/weights/tensor_index.hpp"

#include "compute/weights/json_object.hpp"
#include "compute/weights/model_files.hpp"
#include "compute/weights/printable.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace troupe::compute {

result<void> tensor_index::read_placement(const std::filesystem::path& index) {
  auto object = json_object::read(index);
  if (!object)
    return object.error();
  for (auto& [tensor, file] : object->section("weight_map").text_entries()) {
    // A path that leaves the folder is a hostile index, not a layout.
    if (file.empty() || std::filesystem::path(file).filename() != file)
      return error{errc::invalid_model,
                   fmt::format("{}: tensor '{}' is placed in '{}'; a file name of the same folder "
                               "is needed",
                               index.string(),
                               printable(tensor),
                               printable(file))};
    placed_.emplace(tensor, file);
  }
  if (object->failure())
    return *object->failure();
  if (placed_.empty())
    return error{errc::invalid_model,
                 fmt::format("{}: 'weight_map' is missing or empty", index.string())};
  return {};
}

result<void> tensor_index::add_file(const std::string& file) {
  auto header = read_safetensors_header(folder_ / file);
  if (!header)
    return header.error();
  for (auto& tensor : *header) {
    const auto name = tensor.name;
    const auto [place, added] = tensors_.emplace(name, indexed_tensor{std::move(tensor), file});
    if (!added)
      return error{errc::invalid_model,
                   fmt::format("{}: tensor '{}' is in two files, '{}' and '{}'",
                               folder_.string(),
                               printable(name),
                               place->second.file,
                               file)};
  }
  return {};
}

result<void> tensor_index::check_placement() const {
  for (const auto& [tensor, file] : placed_) {
    if (std::find(missing_files_.begin(), missing_files_.end(), file) != missing_files_.end())
      continue;
    const auto found = tensors_.find(tensor);
    if (found == tensors_.end() || found->second.file != file)
      return error{errc::invalid_model,
                   fmt::format("{}: the index places tensor '{}' in '{}', which does not hold it{}",
                               folder_.string(),
                               printable(tensor),
                               file,
                               found == tensors_.end()
                                 ? std::string()
                                 : fmt::format("; '{}' does", found->second.file))};
  }
  return {};
}

result<tensor_index> tensor_index::open(const std::filesystem::path& folder) {
  auto files = find_model_files(folder);
  if (!files)
    return files.error();
  tensor_index index;
  index.folder_ = folder;
  if (!files->index.empty()) {
    if (auto read = index.read_placement(folder / files->index); !read)
      return read.error();
    std::set<std::string> named;
    for (const auto& [tensor, file] : index.placed_)
      named.insert(file);
    files->weights.assign(named.begin(), named.end());
  }
  index.declared_files_ = files->weights.size();
  for (const auto& file : files->weights) {
    if (!std::filesystem::exists(folder / file)) {
      index.missing_files_.push_back(file);
      continue;
    }
    if (auto added = index.add_file(file); !added)
      return added.error();
  }
  if (auto checked = index.check_placement(); !checked)
    return checked.error();
  return index;
}

tensor_index tensor_index::all_absent(const std::filesystem::path& folder) {
  tensor_index index;
  index.folder_ = folder;
  index.missing_files_ = {"all weights"};
  index.declared_files_ = 1;
  return index;
}

bool tensor_index::may_be_absent(std::string_view name) const {
  if (tensors_.contains(name) || missing_files_.empty())
    return false;
  return placed_.empty() || placed_.contains(name);
}

result<const indexed_tensor*> tensor_index::find(std::string_view name) const {
  if (const auto found = tensors_.find(name); found != tensors_.end())
    return &found->second;
  if (const auto placed = placed_.find(name); placed != placed_.end())
    return error{errc::not_found,
                 fmt::format("{}: tensor '{}' is in '{}', which is not here; this rank needs it",
                             folder_.string(),
                             name,
                             placed->second)};
  if (!missing_files_.empty() && placed_.empty())
    return error{errc::not_found,
                 fmt::format("{}: tensor '{}' is in none of the {} files that are here; {} of {} "
                             "parts are missing: {}",
                             folder_.string(),
                             name,
                             declared_files_ - missing_files_.size(),
                             missing_files_.size(),
                             declared_files_,
                             fmt::join(missing_files_, ", "))};
  return error{errc::invalid_model,
               fmt::format("{}: tensor '{}' is missing", folder_.string(), name)};
}

} // namespace troupe::compute
