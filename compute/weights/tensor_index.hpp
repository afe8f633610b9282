#pragma once
// Which tensors a model folder has, and in which files. Only headers are read.

#include "compute/weights/safetensors.hpp"
#include "config/result.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::compute {

/// A tensor and the file that holds it, relative to the folder.
struct indexed_tensor {
  stored_tensor tensor;
  std::string file;
};

/// The table of a folder. A folder has one file; or many with an index; or many that are named
/// <stem>-00001-of-0000N.safetensors. Files may be absent (a node keeps what its ranks need): then
/// asking for a tensor of them is the error, not opening the folder.
class tensor_index {
public:
  /// Errors name file and tensor: no weights at all, a damaged header, a tensor in two files, a
  /// tensor that the index places in a file which does not hold it.
  static result<tensor_index> open(const std::filesystem::path& folder);

  /// The table of a model of which no file is here: any tensor may be in one that is not.
  static tensor_index all_absent(const std::filesystem::path& folder);

  /// The tensor, or why it cannot be had: no such tensor, or its file is not here.
  result<const indexed_tensor*> find(std::string_view name) const;

  /// Whether `name` may still be in a file that is not here.
  bool may_be_absent(std::string_view name) const;

  /// All tensors of the files that are here, by name.
  const std::map<std::string, indexed_tensor, std::less<>>& tensors() const { return tensors_; }

  /// Files that index or names declare and that are not here.
  const std::vector<std::string>& missing_files() const { return missing_files_; }

private:
  std::filesystem::path folder_;
  std::map<std::string, indexed_tensor, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> placed_; // name -> file, as the index claims
  std::vector<std::string> missing_files_;
  std::size_t declared_files_ = 0;

  result<void> read_placement(const std::filesystem::path& index);
  result<void> add_file(const std::string& file);
  result<void> check_placement() const;
};

} // namespace troupe::compute
