// The entry point of suites that start processes: a role, or the tests.
#define BOOST_TEST_MODULE troupe
#define BOOST_TEST_NO_MAIN
#include "tests/support/process.hpp"

#include <boost/test/unit_test.hpp>

int main(int argc, char** argv) {
  if (const auto code = troupe::test::run_role(argc, argv))
    return *code;
  return boost::unit_test::unit_test_main(&init_unit_test, argc, argv);
}
