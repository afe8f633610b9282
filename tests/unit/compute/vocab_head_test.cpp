// The head of a tensor group: candidates exchanged, whole rows gathered, both in one step. Weights
// are the logits themselves, so that a test says which rank has which.

#include "compute/device.hpp"
#include "compute/layers/vocab_parallel.hpp"
#include "config/topology.hpp"
#include "tests/support/thread_group.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

using namespace troupe;
using namespace troupe::compute;
using troupe::tests::thread_group;

namespace {

using rows_of_logits = std::vector<std::vector<float>>;

/// What one member has of a step.
struct seen_output {
  std::vector<float> logits; ///< Of whole rows, one after the other.
  std::vector<token_candidates> found;
};

/// Row r of the step is the r-th unit vector, times its scale, so its logits are column r of W.
class head_step {
public:
  explicit head_step(rows_of_logits logits)
    : logits_(std::move(logits)), scales_(logits_.size(), 1.0f) {}

  void scale(std::size_t row, float by) { scales_[row] = by; }

  /// Requires that all members see the same.
  seen_output run(std::size_t members, const std::vector<std::uint32_t>& wanted) {
    thread_group group(members);
    std::vector<seen_output> seen(members);
    {
      std::vector<std::jthread> team;
      for (std::size_t rank = 0; rank < members; ++rank)
        team.emplace_back([&, rank] { seen[rank] = run_member(group, rank, wanted); });
    }
    for (const auto& one : seen)
      require_same(one, seen.front());
    counts_ = group.counts();
    return seen.front();
  }

  const troupe::tests::collective_counts& counts() const { return counts_; }

private:
  seen_output
  run_member(thread_group& members, std::size_t rank, const std::vector<std::uint32_t>& wanted) {
    const auto where = make_device("cpu", {});
    check(bool(where), "there is a processor");
    const auto group = members.member(rank);
    const auto rows = logits_.size(), vocabulary = logits_.front().size();
    const auto part = split_part(vocabulary, members.size(), rank);
    std::vector<float> weights;
    for (auto token = part.begin; token < part.end; ++token)
      for (const auto& row : logits_)
        weights.push_back(row[token]);
    weight_source source;
    source.data = reinterpret_cast<const std::byte*>(weights.data());
    source.rows = part.size();
    source.columns = source.stride = rows;
    auto packed = (*where)->pack(source, dtype::f32);
    check(bool(packed), "a small weight is packed");
    std::vector<float> x(rows * rows, 0.0f);
    for (std::size_t row = 0; row < rows; ++row)
      x[row * rows + row] = scales_[row];
    const auto whole = static_cast<std::size_t>(std::count(wanted.begin(), wanted.end(), 0u));
    seen_output seen{std::vector<float>(whole * vocabulary), std::vector<token_candidates>(rows)};
    vocab_head head(**where, *std::move(packed), vocabulary);
    const auto done = head.forward(
      {x.data(), rows, rows}, wanted, {seen.logits.data(), whole, vocabulary}, seen.found, *group);
    check(bool(done), "the group exchanges what it has");
    return seen;
  }

  static void require_same(const seen_output& one, const seen_output& other) {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) { // NaN too
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    BOOST_REQUIRE(same(one.logits, other.logits));
    for (std::size_t row = 0; row < one.found.size(); ++row) {
      BOOST_REQUIRE(one.found[row].ids == other.found[row].ids);
      BOOST_REQUIRE(same(one.found[row].logits, other.found[row].logits));
    }
  }

  rows_of_logits logits_;
  std::vector<float> scales_;
  troupe::tests::collective_counts counts_;
};

rows_of_logits random_rows(std::size_t rows, std::size_t vocabulary, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 3);
  rows_of_logits made(rows, std::vector<float>(vocabulary));
  for (auto& row : made)
    for (auto& logit : row)
      logit = std::round(4 * normal(random)) / 4; // with ties
  return made;
}

/// The best of each part, by ascending id: what a group of so many brings together.
void expect_candidates(const token_candidates& found,
                       const std::vector<float>& logits,
                       std::size_t members,
                       std::size_t count) {
  std::vector<token_id> ids;
  for (std::size_t member = 0; member < members; ++member) {
    const auto part = split_part(logits.size(), members, member);
    for (const auto id :
         find_candidates(std::span(logits).subspan(part.begin, part.size()), count).ids)
      ids.push_back(static_cast<token_id>(part.begin) + id);
  }
  BOOST_TEST(found.ids == ids, boost::test_tools::per_element());
  BOOST_REQUIRE(found.logits.size() == ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    BOOST_TEST(found.logits[i] == logits[ids[i]]);
}

bool has_nan(const token_candidates& found) {
  return std::any_of(
    found.logits.begin(), found.logits.end(), [](float logit) { return std::isnan(logit); });
}

} // namespace

BOOST_AUTO_TEST_CASE(a_step_of_whole_rows_and_candidates_gives_each_what_it_asked_for) {
  const auto logits = random_rows(5, 203, 1);
  for (const std::size_t members : {2, 3, 4, 5}) { // parts of 203 that differ
    head_step step(logits);
    const std::vector<std::uint32_t> wanted{1, 0, 64, 0, 7};
    const auto seen = step.run(members, wanted);
    BOOST_TEST(step.counts().all_gather == 2u);
    for (const std::size_t row : {1, 3}) {
      BOOST_TEST(seen.found[row].empty());
      const auto* given = seen.logits.data() + (row == 1 ? 0 : 203);
      BOOST_TEST(std::equal(logits[row].begin(), logits[row].end(), given));
    }
    for (const std::size_t row : {0, 2, 4})
      expect_candidates(seen.found[row], logits[row], members, wanted[row]);
  }
}

BOOST_AUTO_TEST_CASE(a_greedy_row_moves_a_logit_and_an_id_of_each_rank) {
  head_step step(random_rows(3, 32'000, 2));
  step.run(2, {1, 1, 1});
  BOOST_TEST(step.counts().all_gather == 1u);
  BOOST_TEST(step.counts().gathered_bytes == 3 * 2 * candidate_bytes);
  step.run(2, {0, 1, 1});
  BOOST_TEST(step.counts().all_gather == 2u);
  BOOST_TEST(step.counts().gathered_bytes == 32'000 * sizeof(float) + 2 * 2 * candidate_bytes);
  step.run(2, {0, 0, 0});
  BOOST_TEST(step.counts().all_gather == 1u);
  BOOST_TEST(step.counts().gathered_bytes == 3 * 32'000 * sizeof(float));
}

BOOST_AUTO_TEST_CASE(parts_with_fewer_tokens_than_candidates_bring_all_of_them) {
  const auto logits = random_rows(2, 11, 3); // parts of 4, 4 and 3
  head_step step(logits);
  const auto seen = step.run(3, {4, 64});
  expect_candidates(seen.found[0], logits[0], 3, 4);
  expect_candidates(seen.found[1], logits[1], 3, 64);
  BOOST_TEST(seen.found[1].ids.size() == 11u);
  BOOST_TEST(step.counts().gathered_bytes == 2 * 11 * candidate_bytes);
}

BOOST_AUTO_TEST_CASE(G05_ties_between_ranks_keep_the_lowest_id_first) {
  rows_of_logits logits(1, std::vector<float>(100, -1.0f));
  for (const std::size_t id : {30, 49, 50, 99})
    logits[0][id] = 7;
  const auto found = head_step(logits).run(2, {2}).found[0];
  BOOST_TEST(found.ids == (std::vector<token_id>{30, 49, 50, 99}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(G01_an_infinite_logit_of_one_rank_spoils_its_row_on_all) {
  constexpr float huge = 3e38f; // times 10 is infinite, times 0.5 is not
  for (const float spoilt : {10.0f, -10.0f})
    for (const std::size_t at : {0, 49, 50, 99}) {
      rows_of_logits logits(3, std::vector<float>(100, 0.5f));
      logits[1][at] = spoilt;
      head_step step(logits);
      step.scale(1, huge);
      for (const std::uint32_t count : {1, 5}) {
        const auto found = step.run(2, {count, count, count}).found;
        BOOST_TEST(!has_nan(found[0]));
        BOOST_TEST(has_nan(found[1]));
        BOOST_TEST(!has_nan(found[2]));
        BOOST_TEST(std::is_sorted(found[1].ids.begin(), found[1].ids.end()));
      }
    }
}

BOOST_AUTO_TEST_CASE(G01_a_nan_of_one_rank_is_seen_by_all_though_it_is_no_candidate) {
  for (const std::size_t at : {0, 49, 50, 99}) {
    rows_of_logits logits(1, std::vector<float>(100, 0.5f));
    logits[0][at] = std::nanf("");
    BOOST_TEST(has_nan(head_step(logits).run(2, {1}).found[0]));
    BOOST_TEST(has_nan(head_step(logits).run(3, {8}).found[0]));
  }
}
