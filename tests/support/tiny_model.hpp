#pragma once
// Tiny seeded models in temporary folders, and small changes to their files.

#include "compute/architectures/random_model.hpp"
#include "compute/model.hpp"
#include "tests/support/temporary_folder.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace troupe::tests {

/// A model folder of the wanted shape; ends the test when it cannot be written.
class tiny_model {
public:
  explicit tiny_model(const compute::random_model& wanted = {});

  const std::filesystem::path& folder() const { return folder_.path(); }

  /// Opens it; ends the test when that fails.
  std::shared_ptr<const compute::model> open() const;

  /// Opens it and gives the sentence of the failure; ends the test when it opens.
  std::string refusal() const;

  /// Replaces the first occurrence of `from` in config.json; ends the test when there is none.
  void edit_config(const std::string& from, const std::string& to) const;

private:
  temporary_folder folder_;
};

std::string read_text(const std::filesystem::path& file);
void write_text(const std::filesystem::path& file, const std::string& text);

} // namespace troupe::tests
