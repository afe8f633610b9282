// The entry point that every suite links.
#define BOOST_TEST_MODULE troupe
#include <boost/test/unit_test.hpp>
