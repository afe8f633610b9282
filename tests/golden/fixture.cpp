#include "tests/golden/fixture.hpp"

#include "compute/weights/mapped_file.hpp"
#include "compute/weights/safetensors.hpp"
#include "config/check.hpp"
#include "tests/paths.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>

namespace troupe::tests {
namespace {

std::filesystem::path models_folder() {
  return std::filesystem::path(TROUPE_SOURCE_DIR) / "tests/golden/models";
}

/// The tensors of expected.safetensors by name.
class expectations {
public:
  explicit expectations(const std::filesystem::path& path) {
    auto header = compute::read_safetensors_header(path);
    BOOST_REQUIRE_MESSAGE(header, (header ? "" : header.error().what));
    tensors_ = *std::move(header);
    auto file = compute::mapped_file::open(path);
    BOOST_REQUIRE(file);
    file_ = *std::move(file);
  }

  template <class T>
  std::vector<T> values(const std::string& name) const {
    const auto& tensor = find(name);
    std::vector<T> list(tensor.bytes / sizeof(T));
    std::memcpy(list.data(), file_->bytes().data() + tensor.offset, tensor.bytes);
    return list;
  }

  template <class Id>
  std::vector<Id> integers(const std::string& name) const {
    const auto wide = values<std::int64_t>(name);
    return {wide.begin(), wide.end()};
  }

  std::vector<std::vector<float>> rows(const std::string& name) const {
    const auto flat = values<float>(name);
    const auto width = find(name).shape.at(1);
    std::vector<std::vector<float>> list;
    for (std::size_t first = 0; first < flat.size(); first += width)
      list.emplace_back(flat.data() + first, flat.data() + first + width);
    return list;
  }

private:
  const compute::stored_tensor& find(const std::string& name) const {
    const auto found = std::find_if(
      tensors_.begin(), tensors_.end(), [&](const auto& tensor) { return tensor.name == name; });
    BOOST_REQUIRE_MESSAGE(found != tensors_.end(), "expected.safetensors lacks " << name);
    return *found;
  }

  std::vector<compute::stored_tensor> tensors_;
  std::shared_ptr<const compute::mapped_file> file_;
};

} // namespace

std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(models_folder()))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  check(!names.empty(), "there are fixtures to test with");
  return names;
}

fixture read_fixture(const std::string& name) {
  fixture read{.name = name};
  auto model = compute::model::open(models_folder() / name);
  BOOST_REQUIRE_MESSAGE(model, (model ? "" : model.error().what));
  read.model = *std::move(model);
  const expectations expected(models_folder() / name / "expected.safetensors");
  read.prompt = expected.integers<token_id>("prompt");
  read.ids = expected.integers<token_id>("ids");
  read.steps = expected.integers<std::size_t>("steps");
  read.prompt_logits = expected.rows("prompt_logits");
  read.step_logits = expected.rows("step_logits");
  return read;
}

float relative_error(const std::vector<float>& found, const std::vector<float>& expected) {
  BOOST_REQUIRE(found.size() == expected.size());
  float difference = 0;
  float largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    difference = std::max(difference, std::fabs(found[i] - expected[i]));
    largest = std::max(largest, std::fabs(expected[i]));
  }
  return difference / largest;
}

} // namespace troupe::tests
