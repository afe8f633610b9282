#include "config/cluster_file.hpp"
#include "config/settings_reference.hpp"
#include "tests/paths.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

using namespace troupe;

namespace fs = std::filesystem;

namespace {

const fs::path source_folder = TROUPE_SOURCE_DIR;

std::string text_of(const fs::path& file) {
  std::ifstream stream{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{stream}, {}};
}

cluster_settings example(const std::string& name) {
  auto settings =
    read_cluster_file(source_folder / "config/examples" / name, {}, security_files::ignore);
  BOOST_REQUIRE_MESSAGE(settings, (settings ? "" : settings.error().what));
  return *settings;
}

// A folder for one test, removed with everything in it.
class scratch_folder {
public:
  scratch_folder() {
    auto pattern = (fs::temp_directory_path() / "troupe-XXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }

  ~scratch_folder() { fs::remove_all(path_); }

  fs::path write(const std::string& name, std::string_view text, int mode = 0600) const {
    std::ofstream{path_ / name, std::ios::binary} << text;
    fs::permissions(path_ / name, static_cast<fs::perms>(mode));
    return path_ / name;
  }

  const fs::path& path() const { return path_; }

private:
  fs::path path_;
};

} // namespace

BOOST_AUTO_TEST_CASE(every_example_is_a_cluster_file) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(source_folder / "config/examples")) {
    names.insert(entry.path().filename());
    const auto settings = example(entry.path().filename());
    BOOST_TEST(place_ranks(settings).size() == settings.world(), entry.path());
    BOOST_TEST(text_of(entry.path()).starts_with("# "), entry.path());
  }
  const std::set<std::string> expected{"demo.toml",
                                       "home_lab.toml",
                                       "single.toml",
                                       "slurm.toml",
                                       "tensor_pair.toml",
                                       "three_uneven.toml",
                                       "two_stages.toml"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_demo_is_two_stages_of_two_ranks_in_four_processes) {
  const auto demo = example("demo.toml");
  BOOST_TEST(demo.model.is_demo());
  BOOST_TEST(demo.parallel.pipeline == 2u);
  BOOST_TEST(demo.parallel.tensor == 2u);
  BOOST_TEST(demo.nodes.size() == 4u);
  BOOST_TEST(demo.on_one_host());
  for (const auto& node : demo.nodes) {
    BOOST_TEST(node.threads == 1u);
    BOOST_TEST(node.port == 0u);
  }
}

BOOST_AUTO_TEST_CASE(the_demo_is_built_into_the_program) {
  BOOST_TEST(demo_cluster_text() == text_of(source_folder / "config/examples/demo.toml"));
  BOOST_TEST(parse_cluster_text(demo_cluster_text(), "demo.toml").has_value());
}

BOOST_AUTO_TEST_CASE(examples_for_several_hosts_are_locked) {
  for (const auto* name : {"home_lab.toml", "slurm.toml"}) {
    const auto settings = example(name);
    BOOST_TEST(!settings.on_one_host());
    BOOST_TEST((settings.security.has_secret() || settings.security.has_certificates()));
    BOOST_TEST(settings.nodes[settings.head_index()].port != 0u);
  }
}

BOOST_AUTO_TEST_CASE(the_reference_page_is_the_table) {
  const auto page = text_of(source_folder / "docs/configuration.md");
  BOOST_TEST((page == settings_reference()),
             "docs/configuration.md is out of date: cmake --build <build> --target "
             "configuration_page");
}

BOOST_AUTO_TEST_CASE(the_secret_must_be_there_long_and_private) {
  const scratch_folder folder;
  const auto file = folder.write("c.toml",
                                 "[model]\npath = \"demo\"\n[[node]]\nname = \"a\"\n[security]\n"
                                 "secret_file = \"s\"\n");
  const auto refusal = [&] {
    auto settings = read_cluster_file(file);
    return settings ? std::string{} : settings.error().what;
  };
  BOOST_TEST(refusal().find("No such file") != std::string::npos, refusal());
  BOOST_TEST(refusal().find("c.toml:6: ") != std::string::npos, refusal());
  BOOST_TEST(read_cluster_file(file, {}, security_files::ignore).has_value());
  folder.write("s", "fifteen bytes..");
  BOOST_TEST(refusal().find("15 bytes") != std::string::npos, refusal());
  folder.write("s", "sixteen bytes...", 0644);
  BOOST_TEST(refusal().find("chmod 600") != std::string::npos, refusal());
  folder.write("s", "sixteen bytes...", 0640);
  BOOST_TEST(refusal() == "");
  fs::remove(folder.path() / "s");
  fs::create_directory(folder.path() / "s");
  BOOST_TEST(refusal().find("not a file") != std::string::npos, refusal());
}

BOOST_AUTO_TEST_CASE(the_private_key_must_be_private) {
  const scratch_folder folder;
  const auto file = folder.write("c.toml",
                                 "[model]\npath = \"demo\"\n[[node]]\nname = \"a\"\n[security]\n"
                                 "certificate = \"c\"\nkey = \"k\"\nauthority = \"a\"\n");
  folder.write("c", "x", 0644);
  folder.write("a", "x", 0644);
  folder.write("k", "x", 0644);
  const auto open = read_cluster_file(file);
  BOOST_REQUIRE(!open);
  BOOST_TEST(open.error().what.find("c.toml:7: key ") != std::string::npos, open.error().what);
  folder.write("k", "x", 0600);
  BOOST_TEST(read_cluster_file(file).has_value());
}
