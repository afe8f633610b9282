#include "tests/unit/transport/collective_group.hpp"

#include <boost/mpl/list.hpp>

#include <atomic>
#include <cmath>
#include <random>

using namespace troupe;
using namespace troupe::test;
using troupe::transport::collective_options;

namespace {

using groups = boost::mpl::list<shared_memory_group, loopback_group, ucx_group>;

const collective_options patient{.epoch = epoch_id{3}, .deadline = 20s};

/// Values that round differently when they are added in another order.
std::vector<float> values_of(std::size_t member, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(member * 7919 + count));
  std::uniform_real_distribution<float> spread(-8.0f, 8.0f);
  std::vector<float> values(count);
  for (auto& value : values)
    value = std::exp(spread(random)) * (random() % 2 == 0 ? 1.0f : -1.0f);
  return values;
}

std::vector<float> sum_in_member_order(std::size_t members, std::size_t count) {
  auto sum = values_of(0, count);
  for (std::size_t m = 1; m < members; ++m) {
    const auto next = values_of(m, count);
    for (std::size_t i = 0; i < count; ++i)
      sum[i] += next[i];
  }
  return sum;
}

outcome wrong(std::string what) {
  return error{errc::compute_error, std::move(what)};
}

void require_success(const std::vector<outcome>& outcomes) {
  for (const auto& found : outcomes)
    BOOST_TEST(!found, (found ? found->what : ""));
}

void require_mean(const std::vector<float>& brought, float mean, auto run) {
  const auto members = brought.size();
  require_success(run(members, patient, [&](std::size_t rank, compute::collective& group) {
    float value = brought[rank];
    if (auto reduced = group.all_reduce_sum({&value, 1}); !reduced)
      return outcome_of(reduced);
    return value / static_cast<float>(members) == mean ? outcome() : wrong(std::to_string(value));
  }));
}

} // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(rule_67_each_member_holds_the_mean, Group, groups) {
  require_mean({1, 10, 100}, 37.0f, Group::run);
  require_mean({1, 10, 100, 1000}, 277.75f, Group::run);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(rule_67_sums_have_the_bits_of_the_member_order, Group, groups) {
  for (const std::size_t members : {2, 3, 4}) {
    require_success(Group::run(members, patient, [&](std::size_t rank, compute::collective& group) {
      for (const std::size_t count : {0, 1, 5, 2048, 20'000, 70'001, 200'003}) {
        auto values = values_of(rank, count);
        if (auto reduced = group.all_reduce_sum(values); !reduced)
          return outcome_of(reduced);
        if (values != sum_in_member_order(members, count))
          return wrong(std::to_string(count) + " elements");
      }
      return outcome();
    }));
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(rule_63_gathers_of_uneven_parts, Group, groups) {
  const std::vector<std::vector<std::size_t>> splits{
    {4, 3, 3}, {1, 0, 2}, {0, 0, 0}, {70'000, 3, 140'001}};
  require_success(Group::run(3, patient, [&](std::size_t rank, compute::collective& group) {
    for (const auto& counts : splits) {
      std::vector<float> expected;
      for (std::size_t m = 0; m < counts.size(); ++m) {
        const auto part = values_of(m, counts[m]);
        expected.insert(expected.end(), part.begin(), part.end());
      }
      std::vector<float> all(expected.size());
      if (auto gathered = group.all_gather(values_of(rank, counts[rank]), counts, all); !gathered)
        return outcome_of(gathered);
      if (all != expected)
        return wrong("parts of " + std::to_string(counts[0]));
    }
    return outcome();
  }));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_barrier_blocks_with_swapped_orders_of_arrival, Group, groups) {
  constexpr std::size_t members = 3;
  std::array<std::atomic<int>, 4> arrived{};
  require_success(Group::run(members, patient, [&](std::size_t rank, compute::collective& group) {
    for (std::size_t round = 0; round < arrived.size(); ++round) {
      // Member 0 comes last to even rounds and first to odd ones.
      const auto late = round % 2 == 0 ? rank == 0 : rank != 0;
      if (late)
        std::this_thread::sleep_for(20ms);
      ++arrived[round];
      if (auto passed = group.barrier(); !passed)
        return outcome_of(passed);
      if (arrived[round] != static_cast<int>(members))
        return wrong("round " + std::to_string(round));
    }
    return outcome();
  }));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(many_operations_in_a_row_keep_apart, Group, groups) {
  require_success(Group::run(2, patient, [&](std::size_t rank, compute::collective& group) {
    for (int i = 0; i < 2000; ++i) {
      float value = static_cast<float>(i) + static_cast<float>(rank);
      if (auto reduced = group.all_reduce_sum({&value, 1}); !reduced)
        return outcome_of(reduced);
      if (value != static_cast<float>(2 * i + 1))
        return wrong("operation " + std::to_string(i));
    }
    return outcome();
  }));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(F01_another_length_is_named_on_all_members, Group, groups) {
  for (const std::size_t base : {100, 100'000}) {
    for (const std::size_t odd : {base - 2, base + 2, 10 * base}) {
      const auto outcomes =
        Group::run(3, patient, [&](std::size_t rank, compute::collective& group) {
          std::vector<float> values(base);
          if (auto first = group.all_reduce_sum(values); !first)
            return outcome_of(first);
          values.resize(rank == 1 ? odd : base);
          return outcome_of(group.all_reduce_sum(values));
        });
      for (const auto& found : outcomes) {
        BOOST_REQUIRE(found);
        BOOST_TEST((found->code == errc::mismatch));
        for (const auto& part :
             {std::string("member 0 calls all_reduce 2 of epoch 3 with "),
              std::to_string(base) + " f32 elements, member 1 calls all_reduce 2",
              " with " + std::to_string(odd) + " f32 elements"})
          BOOST_TEST(found->what.find(part) != std::string::npos, found->what);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(F03_swapped_operations_are_both_named, Group, groups) {
  const auto outcomes = Group::run(3, patient, [&](std::size_t rank, compute::collective& group) {
    std::vector<float> values(8);
    std::vector<float> all(24);
    const std::vector<std::size_t> counts{8, 8, 8};
    const auto reduce = [&] { return group.all_reduce_sum(values); };
    const auto gather = [&] { return group.all_gather(values, counts, all); };
    auto first = rank == 2 ? gather() : reduce();
    return outcome_of(!first ? first : rank == 2 ? reduce() : gather());
  });
  for (const auto& found : outcomes) {
    BOOST_REQUIRE(found);
    BOOST_TEST((found->code == errc::mismatch));
    BOOST_TEST(found->what.find("member 0 calls all_reduce 1") != std::string::npos, found->what);
    BOOST_TEST(found->what.find("member 2 calls all_gather 1") != std::string::npos, found->what);
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(other_counts_of_a_gather_are_a_mismatch, Group, groups) {
  const auto outcomes = Group::run(2, patient, [&](std::size_t rank, compute::collective& group) {
    const std::vector<std::size_t> counts{rank == 0 ? 4u : 3u, rank == 0 ? 2u : 3u};
    std::vector<float> mine(counts[rank]);
    std::vector<float> all(6);
    return outcome_of(group.all_gather(mine, counts, all));
  });
  for (const auto& found : outcomes) {
    BOOST_REQUIRE(found);
    BOOST_TEST((found->code == errc::mismatch), found->what);
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_missing_member_is_named_and_the_group_is_poisoned, Group, groups) {
  const collective_options hasty{.epoch = epoch_id{3}, .deadline = 300ms};
  const auto before = std::chrono::steady_clock::now();
  const auto outcomes = Group::run(3, hasty, [&](std::size_t rank, compute::collective& group) {
    std::vector<float> values(4);
    if (auto first = group.all_reduce_sum(values); !first)
      return outcome_of(first);
    if (rank == 2) {
      // Too late: the others have ended the group. Their values may still be there for once.
      std::this_thread::sleep_for(1s);
      auto second = group.all_reduce_sum(values);
      return outcome_of(second ? group.barrier() : second);
    }
    auto second = group.all_reduce_sum(values);
    auto third = group.barrier();
    if (third || third.error().what.find("the group has failed") == std::string::npos)
      return wrong("a poisoned group went on");
    return outcome_of(second);
  });
  BOOST_TEST((std::chrono::steady_clock::now() - before < 10s));
  for (std::size_t m = 0; m < outcomes.size(); ++m) {
    const auto& found = outcomes[m];
    BOOST_REQUIRE_MESSAGE(found, "member " << m << " knows of no failure");
    BOOST_TEST((found->code == errc::timed_out));
    BOOST_TEST(found->what.find("member 2 has not come to all_reduce 2") != std::string::npos,
               found->what);
  }
}

BOOST_AUTO_TEST_CASE(a_fence_breaks_a_shared_memory_wait) {
  std::atomic<transport::shared_memory_collective*> waiting = nullptr;
  std::thread fence([&] {
    while (waiting == nullptr)
      std::this_thread::yield();
    std::this_thread::sleep_for(50ms);
    waiting.load()->abort({errc::stale_epoch, "epoch 3 was fenced"});
  });
  const auto before = std::chrono::steady_clock::now();
  const auto outcomes =
    shared_memory_group::run(2, patient, [&](std::size_t rank, compute::collective& group) {
      if (rank == 1) {
        std::this_thread::sleep_for(200ms); // Comes to a group that was fenced meanwhile.
        return outcome_of(group.barrier());
      }
      waiting = dynamic_cast<transport::shared_memory_collective*>(&group);
      return outcome_of(group.barrier());
    });
  fence.join();
  BOOST_TEST((std::chrono::steady_clock::now() - before < 5s));
  for (const auto& found : outcomes) {
    BOOST_REQUIRE(found);
    BOOST_TEST((found->code == errc::stale_epoch));
    BOOST_TEST(found->what == "epoch 3 was fenced");
  }
}

BOOST_AUTO_TEST_CASE(a_waiting_member_makes_progress_elsewhere) {
  std::atomic<int> calls = 0;
  collective_options options = patient;
  options.progress = [&] { ++calls; };
  require_success(
    shared_memory_group::run(2, options, [&](std::size_t rank, compute::collective& group) {
      if (rank == 1)
        std::this_thread::sleep_for(50ms);
      return outcome_of(group.barrier());
    }));
  BOOST_TEST(calls > 10);
}

BOOST_AUTO_TEST_CASE(a_group_of_one_is_the_identity) {
  require_success(
    shared_memory_group::run(1, patient, [&](std::size_t, compute::collective& group) {
      std::vector<float> values{1, 2, 3};
      std::vector<float> all(3);
      const std::vector<std::size_t> counts{3};
      if (!group.all_reduce_sum(values) || !group.all_gather(values, counts, all)
          || !group.barrier() || all != std::vector<float>{1, 2, 3})
        return wrong("not the identity");
      return outcome();
    }));
}

BOOST_AUTO_TEST_CASE(a_segment_is_opened_by_its_description_only) {
  using transport::shared_segment;
  auto made = shared_segment::create(10'000);
  BOOST_REQUIRE(made);
  made->bytes()[9'999] = std::byte{7};
  auto told = made->describe();
  auto opened = shared_segment::open(told);
  BOOST_REQUIRE(opened);
  BOOST_TEST((opened->bytes()[9'999] == std::byte{7}));
  BOOST_TEST(opened->bytes().size() == 10'000u);
  auto guess = told;
  guess.back() ^= std::byte{1};
  auto refused = shared_segment::open(guess);
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::mismatch));
  guess = told;
  guess[16] ^= std::byte{0xff}; // Another size: mapped beyond its end it would be a bus error.
  guess[18] ^= std::byte{0xff};
  BOOST_TEST(!shared_segment::open(guess));
  for (std::size_t size = 0; size < told.size(); ++size)
    BOOST_TEST(!shared_segment::open(std::span(told).first(size)));
  *made = *shared_segment::create(1);
  auto gone = shared_segment::open(told);
  BOOST_TEST(!gone);
}

BOOST_AUTO_TEST_CASE(members_and_sizes_are_checked) {
  using transport::shared_memory_collective;
  using transport::shared_segment;
  BOOST_TEST(!shared_memory_collective::make(*shared_segment::create(100), 0, 2, patient));
  const auto enough = shared_memory_collective::segment_bytes(3);
  BOOST_TEST(!shared_memory_collective::make(*shared_segment::create(enough), 3, 3, patient));
  auto segment = shared_segment::create(enough);
  const auto told = segment->describe();
  auto first = shared_memory_collective::make(std::move(*segment), 0, 3, patient);
  BOOST_REQUIRE(first);
  auto other = shared_memory_collective::make(*shared_segment::open(told), 0, 2, patient);
  BOOST_REQUIRE(!other);
  BOOST_TEST((other.error().code == errc::mismatch));
}
