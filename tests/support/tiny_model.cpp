#include "tests/support/tiny_model.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <iterator>

namespace troupe::tests {

std::string read_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  BOOST_REQUIRE_MESSAGE(in, "cannot read " << file);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  BOOST_REQUIRE_MESSAGE(out, "cannot write " << file);
}

tiny_model::tiny_model(const compute::random_model& wanted) {
  auto written = compute::write_random_model(folder_.path(), wanted, 1, {});
  BOOST_REQUIRE_MESSAGE(written, (written ? "" : written.error().what));
}

std::shared_ptr<const compute::model> tiny_model::open() const {
  auto opened = compute::model::open(folder());
  BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().what));
  return *opened;
}

std::string tiny_model::refusal() const {
  auto opened = compute::model::open(folder());
  BOOST_REQUIRE_MESSAGE(!opened, "a model that should be refused was opened");
  return opened.error().what;
}

void tiny_model::edit_config(const std::string& from, const std::string& to) const {
  auto text = read_text(folder() / "config.json");
  const auto at = text.find(from);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, "config.json has no " << from);
  write_text(folder() / "config.json", text.replace(at, from.size(), to));
}

} // namespace troupe::tests
