#include "actors/control/run_folder.hpp"
#include "config/cluster_file.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <signal.h>
#include <sys/stat.h>

using namespace troupe;
using namespace troupe::actors;
namespace fs = std::filesystem;
using std::chrono::milliseconds;

namespace {

// Each test has a runtime folder of its own.
struct private_runtime {
  private_runtime() {
    fs::permissions(scratch.path(), fs::perms::owner_all);
    ::setenv("XDG_RUNTIME_DIR", scratch.path().c_str(), 1);
  }

  fs::path base() const { return scratch.path() / ("troupe-" + std::to_string(::getuid())); }

  tests::temporary_folder scratch;
};

cluster_settings settings_named(const std::string& file) {
  cluster_settings made;
  made.file = file;
  return made;
}

// A head in a process of its own, until it is told to end.
const test::role head("head", [](test::parent& p) {
  auto held = control_file::claim(p.arguments().at(0));
  if (!held) {
    p.say("refused " + held.error().what);
    return 1;
  }
  const auto written = held->write({4711, "c", "a"});
  p.say(written ? "holds" : written.error().what);
  p.hear(milliseconds(20'000));
  return 0;
});

} // namespace

BOOST_FIXTURE_TEST_SUITE(run_folders, private_runtime)

BOOST_AUTO_TEST_CASE(one_file_has_one_folder_under_every_spelling) {
  const auto file = scratch.path() / "cluster.toml";
  std::ofstream(file) << "x";
  fs::create_directory(scratch.path() / "sub");
  const auto one = run_folder_for(settings_named(file));
  BOOST_TEST(one == run_folder_for(settings_named(scratch.path() / "sub/../cluster.toml")));
  BOOST_TEST(one != run_folder_for(settings_named(scratch.path() / "other.toml")));
  BOOST_TEST(run_folder_for(settings_named("the demo"))
             == run_folder_for(settings_named("the demo")));
  BOOST_TEST(!fs::exists(one)); // Asking leaves nothing behind.
}

BOOST_AUTO_TEST_CASE(a_folder_is_for_its_user_alone) {
  const auto folder = run_folder_for(settings_named("x"));
  BOOST_REQUIRE(make_run_folder(folder));

  struct stat status {};

  BOOST_REQUIRE(::stat(folder.c_str(), &status) == 0);
  BOOST_TEST((status.st_mode & 0777) == 0700u);
  fs::permissions(folder, fs::perms::all);
  const auto again = make_run_folder(folder);
  BOOST_REQUIRE(!again);
  BOOST_TEST(again.error().what.find("not a folder of this user alone") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_link_in_the_place_of_the_folder_is_refused) {
  fs::create_directory(scratch.path() / "elsewhere");
  fs::create_directory_symlink(scratch.path() / "elsewhere", base());
  const auto made = make_run_folder(run_folder_for(settings_named("x")));
  BOOST_REQUIRE(!made);
  BOOST_TEST(static_cast<int>(made.error().code) == static_cast<int>(errc::io_error));
}

BOOST_AUTO_TEST_CASE(what_the_head_writes_is_read_and_taken_away) {
  const auto folder = run_folder_for(settings_named("x"));
  {
    auto held = control_file::claim(folder);
    BOOST_REQUIRE(held);
    BOOST_TEST(!read_control(folder)); // Nothing is told before the port is bound.
    BOOST_REQUIRE(held->write({7000, "home", "a"}));
    const auto read = read_control(folder);
    BOOST_REQUIRE(read);
    BOOST_TEST(read->port == 7000);
    BOOST_TEST(read->cluster == "home");
    BOOST_TEST(read->node == "a");
    BOOST_TEST(read->pid == ::getpid());
    BOOST_TEST(read->started > 0u);
  }
  BOOST_TEST(!fs::exists(folder));
  const auto gone = read_control(folder);
  BOOST_REQUIRE(!gone);
  BOOST_TEST(static_cast<int>(gone.error().code) == static_cast<int>(errc::not_found));
}

BOOST_AUTO_TEST_CASE(A13_two_heads_of_one_file_do_not_share_a_folder) {
  const auto folder = run_folder_for(settings_named("x"));
  auto first = test::process::start("head", {folder.string()});
  BOOST_REQUIRE(first.hear(milliseconds(10'000)) == "holds");
  const auto second = control_file::claim(folder);
  BOOST_REQUIRE(!second);
  BOOST_TEST(second.error().what.find("process " + std::to_string(first.pid()))
             != std::string::npos);
  first.say("end");
  BOOST_REQUIRE(first.wait(milliseconds(10'000)));
  BOOST_TEST(!!control_file::claim(folder));
}

BOOST_AUTO_TEST_CASE(E05_a_killed_head_leaves_nothing_that_counts) {
  const auto folder = run_folder_for(settings_named("x"));
  auto first = test::process::start("head", {folder.string()});
  BOOST_REQUIRE(first.hear(milliseconds(10'000)) == "holds");
  BOOST_REQUIRE(read_control(folder));
  first.signal(SIGKILL);
  BOOST_REQUIRE(first.wait(milliseconds(10'000)));
  BOOST_TEST(fs::exists(folder / "control.json")); // It is still there, and it is not believed.
  const auto stale = read_control(folder);
  BOOST_REQUIRE(!stale);
  BOOST_TEST(static_cast<int>(stale.error().code) == static_cast<int>(errc::not_found));
  BOOST_TEST(!!control_file::claim(folder));
}

BOOST_AUTO_TEST_CASE(a_process_number_that_was_given_away_again_is_not_believed) {
  const auto folder = run_folder_for(settings_named("x"));
  BOOST_REQUIRE(make_run_folder(folder));
  std::ofstream(folder / "control.json")
    << R"({"port":1,"cluster":"c","node":"a","pid":)" << ::getpid() << R"(,"started":1})";
  BOOST_TEST(!read_control(folder));
}

BOOST_AUTO_TEST_CASE(a_damaged_control_file_is_named) {
  const auto folder = run_folder_for(settings_named("x"));
  BOOST_REQUIRE(make_run_folder(folder));
  for (const char* text : {"", "{", "[]", "null", R"({"port":70000})", R"({"port":"x"})"}) {
    std::ofstream(folder / "control.json") << text;
    const auto read = read_control(folder);
    BOOST_REQUIRE(!read);
    BOOST_TEST(read.error().what.find("control.json") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(unique_folders_differ_and_those_of_the_dead_are_swept) {
  const auto settings = settings_named("x");
  const auto one = make_unique_run_folder(settings);
  BOOST_REQUIRE(one);
  const auto dead = base() / "0123456789abcdef-1-1-0"; // Process 1 did not start at tick 1.
  fs::create_directory(dead);
  const auto two = make_unique_run_folder(settings);
  BOOST_REQUIRE(two);
  BOOST_TEST(*one != *two);
  BOOST_TEST(fs::exists(*one)); // Its process, this one, lives.
  BOOST_TEST(!fs::exists(dead));
  remove_run_folder(*one);
  BOOST_TEST(!fs::exists(*one));
}

BOOST_AUTO_TEST_SUITE_END()
