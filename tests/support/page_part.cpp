#include "tests/support/page_part.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <iterator>
#include <string_view>

namespace troupe::tests {

std::optional<std::string> test_option(const std::string& name) {
  const auto& suite = boost::unit_test::framework::master_test_suite();
  for (int i = 1; i < suite.argc; ++i)
    if (const std::string_view word{suite.argv[i]}; word.starts_with(name + "="))
      return std::string{word.substr(name.size() + 1)};
  return std::nullopt;
}

bool has_test_option(const std::string& name) {
  const auto& suite = boost::unit_test::framework::master_test_suite();
  for (int i = 1; i < suite.argc; ++i)
    if (name == suite.argv[i])
      return true;
  return false;
}

void write_page_part(const std::filesystem::path& page,
                     const std::string& name,
                     const std::string& text) {
  std::ifstream in{page};
  std::string whole{std::istreambuf_iterator<char>(in), {}};
  const auto begin_mark = "<!-- begin " + name + " -->\n";
  const auto begin = whole.find(begin_mark);
  const auto end = whole.find("<!-- end " + name + " -->", begin);
  BOOST_REQUIRE_MESSAGE(end != std::string::npos,
                        page << " has no part '" << name << "' to write to");
  const auto from = begin + begin_mark.size();
  whole.replace(from, end - from, text);
  std::ofstream out{page};
  out << whole;
  BOOST_REQUIRE(out.good());
}

} // namespace troupe::tests
