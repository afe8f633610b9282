#include "tests/paths.hpp"
#include "tests/tidy/states_page.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <iterator>

BOOST_AUTO_TEST_CASE(the_page_of_states_equals_the_tables) {
  std::ifstream in(TROUPE_SOURCE_DIR "/docs/states.md", std::ios::binary);
  BOOST_REQUIRE(in);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  BOOST_TEST((page == troupe::tidy::states_page()),
             "docs/states.md is not what the tables say; cmake --build BUILD --target states_page");
}
