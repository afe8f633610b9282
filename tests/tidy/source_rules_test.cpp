// Each rule finds what breaks it, and leaves alone what does not.
#include "tests/tidy/source_rules.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe::tidy;

namespace {

bool everything(const std::string&) {
  return true;
}

std::size_t includes(const std::string& path, const std::string& text) {
  const auto whole = path.ends_with(".hpp") ? "#pragma once\n" + text : text;
  return check_includes({path, whole}, everything).size();
}

} // namespace

BOOST_AUTO_TEST_CASE(includes_go_down_the_house_only) {
  BOOST_TEST(includes("actors/a.cpp", "#include \"transport/t.hpp\"\n") == 0u);
  BOOST_TEST(includes("compute/a.cpp", "#include \"config/c.hpp\"\n") == 0u);
  BOOST_TEST(includes("compute/a.cpp", "#include \"transport/t.hpp\"\n") == 1u);
  BOOST_TEST(includes("config/a.hpp", "#include \"actors/t.hpp\"\n") == 1u);
  BOOST_TEST(includes("actors/a.cpp", "#include \"tests/t.hpp\"\n") == 1u);
}

BOOST_AUTO_TEST_CASE(includes_are_written_from_the_root_and_are_there) {
  BOOST_TEST(includes("actors/a.cpp", "#include \"rank.hpp\"\n") == 1u);
  BOOST_TEST(includes("actors/a.cpp", "#include \"../config/c.hpp\"\n") == 1u);
  const auto nothing = [](const std::string&) { return false; };
  BOOST_TEST(check_includes({"actors/a.cpp", "#include \"config/c.hpp\"\n"}, nothing).size() == 1u);
}

BOOST_AUTO_TEST_CASE(packages_stay_in_their_folders) {
  BOOST_TEST(includes("actors/a.hpp", "#include <caf/all.hpp>\n") == 0u);
  BOOST_TEST(includes("transport/a.hpp", "#include <caf/all.hpp>\n") == 1u);
  BOOST_TEST(includes("transport/ucx/a.hpp", "#include <ucp/api/ucp.h>\n") == 0u);
  BOOST_TEST(includes("transport/a.cpp", "#include <ucp/api/ucp.h>\n") == 1u);
  BOOST_TEST(includes("actors/a.cpp", "#include <uct/api/uct.h>\n") == 1u);
  BOOST_TEST(includes("config/a.cpp", "#include <boost/test/unit_test.hpp>\n") == 1u);
  BOOST_TEST(includes("compute/cpu/a.cpp", "#include <cuda_runtime.h>\n") == 1u);
}

BOOST_AUTO_TEST_CASE(heavy_headers_stay_out_of_headers_and_alone) {
  BOOST_TEST(includes("actors/a.cpp", "#include <nlohmann/json.hpp>\n") == 0u);
  BOOST_TEST(includes("actors/a.hpp", "#include <nlohmann/json.hpp>\n") == 1u);
  BOOST_TEST(includes("config/a.hpp", "#include <toml.hpp>\n") == 1u);
  BOOST_TEST(includes("actors/cli/a.cpp", "#include <CLI/CLI.hpp>\n#include <nlohmann/json.hpp>\n")
             == 1u);
}

BOOST_AUTO_TEST_CASE(a_header_has_pragma_once) {
  BOOST_TEST(check_includes({"actors/a.hpp", "int x();\n"}, everything).size() == 1u);
}

BOOST_AUTO_TEST_CASE(files_and_lines_end_somewhere) {
  std::string text;
  for (int i = 0; i < 500; ++i)
    text += "\n";
  BOOST_TEST(check_length({"a.cpp", text}).empty());
  BOOST_TEST(check_length({"a.cpp", text + "\n"}).size() == 1u);
  BOOST_TEST(check_length({"a.cpp", std::string(100, 'x')}).empty());
  BOOST_TEST(check_length({"a.cpp", std::string(101, 'x')}).size() == 1u);
  std::string arrows;
  for (int i = 0; i < 100; ++i)
    arrows += "─"; // one column, three bytes
  BOOST_TEST(check_length({"a.cpp", arrows}).empty());
  const auto wide = std::string(120, 'x') + "\n";
  const auto table = "// clang-format off\n" + wide + "// clang-format on\n";
  BOOST_TEST(check_length({"a.cpp", table}).empty());
  BOOST_TEST(check_length({"a.cpp", table + wide}).size() == 1u);
}

BOOST_AUTO_TEST_CASE(names_say_something) {
  BOOST_TEST(check_names({"actors/string_utils.cpp", ""}).size() == 1u);
  BOOST_TEST(check_names({"common/a.md", ""}).size() == 1u);
  BOOST_TEST(check_names({"actors/uncommon.cpp", ""}).empty());
  BOOST_TEST(check_names({"actors/a.hpp", "class rank_manager {\n"}).size() == 1u);
  BOOST_TEST(check_names({"actors/a.hpp", "class rank { // no manager\n"}).empty());
}

BOOST_AUTO_TEST_CASE(no_file_knows_a_machine) {
  const auto found = [](const std::string& text) {
    return check_machine_paths({"docs/a.md", text}).size();
  };
  BOOST_TEST(found("see /wo"
                   "rk/main")
             == 1u);
  BOOST_TEST(found("\"/ro"
                   "ot/.cache\"")
             == 1u);
  BOOST_TEST(found("a network/wo"
                   "rk/thing")
             == 0u);
  BOOST_TEST(found("the root/ folder") == 0u);
}
