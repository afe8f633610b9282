// What the injector lets happen, and when: the events that a moment counts, and nothing else.

#include "compute/faults/fault_injector.hpp"
#include "compute/faults/faulty_collective.hpp"
#include "compute/faults/faulty_device.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

using namespace troupe;
using namespace troupe::compute;
using namespace std::chrono_literals;

namespace {

fault at_rank_1(fault_action what, fault_moment when) {
  fault made;
  made.name = "fault[0]";
  made.what = what;
  made.spots = {{1, std::nullopt}};
  made.when = std::move(when);
  return made;
}

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::ifstream stream{file};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_frame_meets_the_fault_of_its_number_and_no_other_does) {
  auto one = at_rank_1(fault_action::drop, {fault_event::message, 3, {}, {}});
  one.times = 2;
  fault_injector injector{1, {one}, fault_trace{{}, 1}};
  std::vector<std::size_t> met;
  for (int i = 0; i < 6; ++i)
    met.push_back(injector.meet_frame(7).size());
  BOOST_CHECK((met == std::vector<std::size_t>{0, 0, 1, 1, 0, 0}));
  BOOST_TEST(injector.made() == 2u);
}

BOOST_AUTO_TEST_CASE(only_the_frames_of_its_link_are_counted) {
  auto one = at_rank_1(fault_action::corrupt, {fault_event::message, 2, {}, {}});
  one.spots = {{1, 7}};
  fault_injector injector{1, {one}, fault_trace{{}, 1}};
  BOOST_TEST(injector.meet_frame(7).empty());
  BOOST_TEST(injector.meet_frame(8).empty());
  BOOST_TEST(injector.meet_frame(8).empty());
  BOOST_TEST(injector.meet_frame(7).size() == 1u);
}

BOOST_AUTO_TEST_CASE(faults_of_other_ranks_do_nothing_here) {
  fault_injector injector{
    2, {at_rank_1(fault_action::drop, {fault_event::message, 1, {}, {}})}, fault_trace{{}, 1}};
  BOOST_TEST(injector.meet_frame(7).empty());
}

BOOST_AUTO_TEST_CASE(a_step_and_a_layer_of_it_are_counted_each) {
  auto one = at_rank_1(fault_action::nan, {fault_event::step, 2, 3, {}});
  fault_injector injector{1, {one}, fault_trace{{}, 1}};
  for (int step = 1; step <= 3; ++step) {
    injector.begin_step();
    for (std::uint64_t layer = 2; layer < 5; ++layer) {
      injector.begin_layer(layer);
      const bool expected = step == 2 && layer == 3;
      BOOST_TEST(injector.spoils_activation().has_value() == expected);
      BOOST_TEST(!injector.spoils_activation().has_value());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_cut_lasts_its_steps_or_for_good) {
  auto one = at_rank_1(fault_action::cut, {fault_event::step, 2, {}, {}});
  one.steps = 2;
  fault_injector injector{1, {one}, fault_trace{{}, 1}};
  std::vector<bool> cut;
  for (int step = 1; step <= 5; ++step) {
    injector.begin_step();
    static_cast<void>(injector.meet_frame(7));
    cut.push_back(injector.is_cut(7));
    BOOST_TEST(!injector.is_cut(8));
  }
  BOOST_CHECK((cut == std::vector<bool>{false, true, true, false, false}));
}

BOOST_AUTO_TEST_CASE(a_slow_rank_is_held_up_for_its_steps) {
  auto one = at_rank_1(fault_action::slow, {fault_event::step, 1, {}, {}});
  one.factor = 5;
  one.steps = 1;
  fault_injector injector{1, {one}, fault_trace{{}, 1}};
  const auto time = [&] {
    injector.begin_step();
    const auto begin = std::chrono::steady_clock::now();
    injector.end_layer(5ms);
    return std::chrono::steady_clock::now() - begin;
  };
  BOOST_TEST((time() >= 20ms));
  BOOST_TEST((time() < 20ms));
}

BOOST_AUTO_TEST_CASE(a_rank_that_stands_still_for_good_is_released_by_another_thread) {
  fault_injector injector{
    1, {at_rank_1(fault_action::stop, {fault_event::phase, 2, {}, "joining"})}, fault_trace{{}, 1}};
  injector.enter_phase("joining");
  injector.enter_phase("ready");
  std::thread other{[&] {
    std::this_thread::sleep_for(50ms);
    injector.release();
  }};
  const auto begin = std::chrono::steady_clock::now();
  injector.enter_phase("joining");
  BOOST_TEST((std::chrono::steady_clock::now() - begin >= 40ms));
  other.join();
}

BOOST_AUTO_TEST_CASE(a_load_is_met_once_at_its_percentage) {
  auto one = at_rank_1(fault_action::refuse_allocation, {fault_event::load, 50, {}, {}});
  fault_injector injector{1, {one}, fault_trace{{}, 1}};
  injector.begin_load();
  BOOST_TEST(!injector.refuses_allocation());
  injector.load(49, 100);
  BOOST_TEST(!injector.refuses_allocation());
  injector.load(75, 100);
  BOOST_TEST(injector.refuses_allocation());
  injector.load(100, 100);
  BOOST_TEST(!injector.refuses_allocation());
}

BOOST_AUTO_TEST_CASE(what_happened_in_an_earlier_life_does_not_happen_again) {
  const tests::temporary_folder folder;
  const auto book = folder.path() / "a.faults";
  const auto one = at_rank_1(fault_action::fail_transport, {fault_event::call, 2, {}, {}});
  const auto happens = [&](std::uint64_t run) {
    fault_injector injector{1, {one}, fault_trace{book, run}};
    return !injector.refuses_transport(7) && injector.refuses_transport(7);
  };
  BOOST_TEST(happens(1));
  BOOST_TEST(!happens(1));
  const auto lines = lines_of(book);
  BOOST_REQUIRE(lines.size() == 2u);
  BOOST_TEST(lines[1] == "fault[0] fail_transport at rank 1: step 0 message 0 phase none");
  BOOST_TEST(happens(2)); // Another run of the cluster begins anew.
  BOOST_TEST(lines_of(book).size() == 2u);
}

BOOST_AUTO_TEST_CASE(faults_that_are_injected_are_new_each_time) {
  const tests::temporary_folder folder;
  fault_injector injector{1, {}, fault_trace{folder.path() / "a.faults", 1}};
  auto one = at_rank_1(fault_action::fail_transport, {fault_event::call, 2, {}, {}});
  one.name = "injected";
  one.injected = true;
  for (int round = 0; round < 3; ++round) {
    injector.add(one);
    BOOST_TEST(!injector.refuses_transport(7));
    BOOST_TEST(injector.refuses_transport(7));
  }
  BOOST_TEST(injector.made() == 3u);
}

BOOST_AUTO_TEST_CASE(one_seed_gives_one_trace) {
  const tests::temporary_folder folder;
  const auto trace_of = [&](const std::string& name) {
    const auto book = folder.path() / name;
    auto lost = at_rank_1(fault_action::drop, {fault_event::step, 3, {}, {}});
    auto spoilt = at_rank_1(fault_action::nan, {fault_event::step, 2, 1, {}});
    spoilt.seed = 77;
    spoilt.times = 2;
    fault_injector injector{1, {lost, spoilt}, fault_trace{book, 1}};
    for (int step = 0; step < 4; ++step) {
      injector.begin_step();
      injector.begin_layer(1);
      static_cast<void>(injector.spoils_activation());
      static_cast<void>(injector.meet_frame(2));
    }
    return lines_of(book);
  };
  const auto first = trace_of("a");
  BOOST_TEST(first.size() == 4u);
  BOOST_TEST(first == trace_of("b"), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_faulty_device_refuses_and_spoils_one_value) {
  auto refused = at_rank_1(fault_action::refuse_allocation, {fault_event::call, 2, {}, {}});
  auto spoilt = at_rank_1(fault_action::nan, {fault_event::step, 1, {}, {}});
  fault_injector injector{1, {refused, spoilt}, fault_trace{{}, 1}};
  auto made = make_device("cpu", {});
  BOOST_REQUIRE(made);
  const auto device = make_faulty_device(std::move(*made), injector);
  BOOST_TEST(device->allocate(64).has_value());
  const auto no = device->allocate(64);
  BOOST_REQUIRE(!no);
  BOOST_TEST((no.error().code == errc::out_of_memory));
  BOOST_TEST(device->allocate(64).has_value());
  const std::vector<float> weights(32 * 16, 0.5f);
  weight_source source;
  source.data = reinterpret_cast<const std::byte*>(weights.data());
  source.rows = 32;
  source.columns = source.stride = 16;
  const auto packed = device->pack(source, dtype::f32);
  BOOST_REQUIRE(packed);
  std::vector<float> x(3 * 16, 1.0f);
  std::vector<float> out(3 * 32);
  const auto bad_values = [&] {
    device->matmul(**packed, {x.data(), 3, 16}, {}, {out.data(), 3, 32}, {});
    return std::count_if(out.begin(), out.end(), [](float v) { return std::isnan(v); });
  };
  BOOST_TEST(bad_values() == 0);
  injector.begin_step();
  BOOST_TEST(bad_values() == 1);
  BOOST_TEST(bad_values() == 0);
}

BOOST_AUTO_TEST_CASE(a_faulty_collective_calls_another_length) {
  class recording final : public collective {
  public:
    std::size_t rank() const noexcept override { return 0; }

    std::size_t size() const noexcept override { return 2; }

    result<void> all_reduce_sum(std::span<float> values) override {
      calls.push_back(values.size());
      return {};
    }

    result<void> all_gather(std::span<const float>,
                            std::span<const std::size_t>,
                            std::span<float> all) override {
      calls.push_back(all.size());
      return {};
    }

    result<void> barrier() override {
      calls.push_back(0);
      return {};
    }

    std::vector<std::size_t> calls;
  };

  auto shorter = at_rank_1(fault_action::wrong_length, {fault_event::call, 2, {}, {}});
  shorter.length = "n-2";
  auto other = at_rank_1(fault_action::wrong_operation, {fault_event::call, 3, {}, {}});
  fault_injector injector{1, {shorter, other}, fault_trace{{}, 1}};
  recording inner;
  const auto group = make_faulty_collective(inner, injector);
  std::vector<float> values(8);
  for (int i = 0; i < 4; ++i)
    BOOST_TEST(group->all_reduce_sum(values).has_value());
  BOOST_CHECK((inner.calls == std::vector<std::size_t>{8, 6, 0, 8}));
}
