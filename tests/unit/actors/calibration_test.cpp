// The figures of this host: that they are measured, kept, and never believed when they are damaged.

#include "actors/forecast/calibration.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_model.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdlib>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::tests;

namespace {

calibration some_figures() {
  calibration made;
  auto& speed = made.speed;
  speed.name = "measured here";
  speed.cores = 2;
  speed.products = {{{1, 1e-10}, {8, 0.3e-9}}, {{1, 0.6e-10}, {8, 0.2e-9}}};
  speed.reads = {{1e6, 2e10}, {1e9, 1e10}};
  speed.measured_bytes = 1e6;
  speed.unit_s = 1e-5;
  speed.unit_all_s = 2e-5;
  speed.state_byte_s = 1e-10;
  speed.attention_op_s = 1e-11;
  speed.logit_s = 1e-9;
  speed.begin_s = 1e-6;
  speed.awake_hop_s = 1e-7;
  speed.asleep_hop_s = 3e-5;
  made.reducing = {1e-6, 5e9};
  return made;
}

calibration_key some_key() {
  return {.processor = "a processor",
          .instruction_set = "avx2",
          .version = "1",
          .cores = 2,
          .hold = dtype::bf16};
}

std::filesystem::path only_file(const std::filesystem::path& folder) {
  return std::filesystem::directory_iterator(folder)->path();
}

} // namespace

BOOST_AUTO_TEST_CASE(figures_are_kept_to_the_last_bit) {
  const temporary_folder cache;
  const auto folder = cache.path() / "made" / "troupe";
  BOOST_TEST(!find_calibration(folder, some_key()));
  BOOST_REQUIRE(keep_calibration(folder, some_key(), some_figures()));
  const auto found = find_calibration(folder, some_key());
  BOOST_REQUIRE(found);
  BOOST_CHECK(*found == some_figures());
}

BOOST_AUTO_TEST_CASE(figures_of_another_key_are_not_these) {
  const temporary_folder cache;
  BOOST_REQUIRE(keep_calibration(cache.path(), some_key(), some_figures()));
  auto other = some_key();
  other.hold = dtype::int4;
  BOOST_TEST(!find_calibration(cache.path(), other));
  other = some_key();
  other.version = "2";
  BOOST_TEST(!find_calibration(cache.path(), other));
  // Nor where a file was renamed to be found under it.
  auto key = some_key();
  key.cores = 4;
  BOOST_REQUIRE(keep_calibration(cache.path() / "b", key, some_figures()));
  std::filesystem::copy_file(
    only_file(cache.path() / "b"),
    [&] {
      for (const auto& entry : std::filesystem::directory_iterator(cache.path()))
        if (entry.is_regular_file())
          return entry.path();
      return std::filesystem::path();
    }(),
    std::filesystem::copy_options::overwrite_existing);
  BOOST_TEST(!find_calibration(cache.path(), some_key()));
}

BOOST_AUTO_TEST_CASE(a_damaged_file_is_as_good_as_none) {
  const temporary_folder cache;
  BOOST_REQUIRE(keep_calibration(cache.path(), some_key(), some_figures()));
  const auto file = only_file(cache.path());
  const auto whole = read_text(file);
  for (std::size_t length = 0; length < whole.size() - 2; length += 7) {
    write_text(file, whole.substr(0, length));
    BOOST_TEST(!find_calibration(cache.path(), some_key()), "cut after " << length << " bytes");
  }
  for (const std::string wrong : {"-1.0", "0.0", "null", "\"fast\"", "[]"}) {
    auto text = whole;
    const auto at = text.find("\"unit_s\": ") + 10;
    text.replace(at, text.find(',', at) - at, wrong);
    write_text(file, text);
    BOOST_TEST(!find_calibration(cache.path(), some_key()), wrong << " is believed");
  }
  BOOST_REQUIRE(keep_calibration(cache.path(), some_key(), some_figures()));
  BOOST_TEST(find_calibration(cache.path(), some_key()).has_value());
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_written_is_an_error) {
  BOOST_TEST(!keep_calibration({}, some_key(), some_figures()));
  BOOST_TEST(!keep_calibration("/proc/nowhere", some_key(), some_figures()));
  BOOST_TEST(!find_calibration({}, some_key()));
}

BOOST_AUTO_TEST_CASE(the_cache_is_where_the_user_wants_it) {
  const temporary_folder home;
  BOOST_REQUIRE(::setenv("XDG_CACHE_HOME", home.path().c_str(), 1) == 0);
  BOOST_TEST(cache_folder() == home.path() / "troupe");
  BOOST_REQUIRE(::setenv("XDG_CACHE_HOME", "relative", 1) == 0); // not allowed by its standard
  BOOST_REQUIRE(::setenv("HOME", home.path().c_str(), 1) == 0);
  BOOST_TEST(cache_folder() == home.path() / ".cache" / "troupe");
  BOOST_REQUIRE(::unsetenv("HOME") == 0);
  BOOST_TEST(cache_folder() == std::filesystem::path());
}

BOOST_AUTO_TEST_CASE(this_host_is_measured_in_seconds_with_figures_that_can_be) {
  const auto begun = std::chrono::steady_clock::now();
  const auto found = measure_here(key_of_this_host(dtype::bf16, "test"));
  const auto took = std::chrono::steady_clock::now() - begun;
  BOOST_REQUIRE_MESSAGE(found, (found ? "" : found.error().what));
  // Alone it takes two seconds: the bound proves that nothing was left running.
  BOOST_TEST((took < std::chrono::seconds(60)));
  const auto& speed = found->speed;
  BOOST_TEST(speed.products.one.size() == 6u);
  // A weight of two bytes is read at 0.1 to 1000 GB/s, and a row more never makes it cheaper by
  // much.
  BOOST_TEST(speed.products.one.front().element_s > 2e-12);
  BOOST_TEST(speed.products.one.front().element_s < 2e-8);
  BOOST_TEST(speed.products.one.back().element_s > 4 * speed.products.one.front().element_s);
  for (const auto figure : {speed.unit_s, speed.begin_s, speed.asleep_hop_s})
    BOOST_TEST((figure > 0 && figure < 1), "a figure of " << figure << " s");
  const temporary_folder cache;
  const auto key = key_of_this_host(dtype::bf16, "test");
  BOOST_REQUIRE(keep_calibration(cache.path(), key, *found));
  BOOST_CHECK(*find_calibration(cache.path(), key) == *found);
}
