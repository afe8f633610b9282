#include "tests/unit/compute/device_cases.hpp"

#include "compute/cpu/machine.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <cfloat>
#include <functional>

using namespace troupe;
using namespace troupe::compute;
using namespace troupe::compute::cases;
namespace data = boost::unit_test::data;

namespace {

tensor view(std::vector<float>& values, std::size_t rows) {
  return {values.data(), rows, values.size() / rows};
}

batch one_sequence(std::uint32_t position, std::uint32_t count) {
  return {{{.pages = {}, .first_row = 0, .position = position, .count = count}}};
}

/// Runs `f` on every instruction set with a fused multiply-add and on 1, 2, 3 threads: all results
/// must have the same bits.
void require_same_bits(const std::function<std::vector<float>(device&)>& f) {
  std::vector<float> first;
  for (const auto& name : fused_instruction_sets()) {
    const with_instruction_set use(name);
    for (std::size_t threads : {1, 2, 3}) {
      auto on = make_cpu(threads);
      const auto found = f(*on);
      if (first.empty())
        first = found;
      BOOST_TEST(same_bits(found, first), name << ", " << threads << " threads");
    }
  }
}

const rope_table tiny_rope{.inverse_frequencies = {1.0f, 0.1f, 0.01f, 0.001f, 3e-4f},
                           .magnitude = 1.25f};

} // namespace

BOOST_DATA_TEST_CASE(rms_norm_equals_the_oracle, data::make({1, 7, 16, 64, 1000}), columns) {
  auto on = make_cpu();
  const std::size_t n = columns;
  auto x = random_floats(5 * n, 41, 3.0f);
  const auto weight = random_floats(n, 42);
  std::vector<double> expected;
  for (std::size_t r = 0; r < 5; ++r) {
    double squares = 0.0;
    for (std::size_t i = 0; i < n; ++i)
      squares += double{x[r * n + i]} * x[r * n + i];
    for (std::size_t i = 0; i < n; ++i)
      expected.push_back(x[r * n + i] / std::sqrt(squares / n + 1e-5) * weight[i]);
  }
  std::vector<float> out(5 * n);
  on->rms_norm(view(x, 5), weight, 1e-5f, view(out, 5));
  BOOST_TEST(worst(out, expected, 1.0) < 2e-6);
  on->rms_norm(view(x, 5), weight, 1e-5f, view(x, 5));
  BOOST_TEST(same_bits(x, out)); // in place
}

BOOST_AUTO_TEST_CASE(head_norm_takes_each_head_by_itself) {
  auto on = make_cpu();
  auto x = random_floats(3 * 4 * 20, 43);
  const auto weight = random_floats(20, 44);
  std::vector<float> expected(x.size());
  on->rms_norm({x.data(), 12, 20}, weight, 1e-6f, {expected.data(), 12, 20});
  on->head_norm(view(x, 3), 20, weight, 1e-6f);
  BOOST_TEST(same_bits(x, expected));
}

BOOST_AUTO_TEST_CASE(rope_equals_the_reference_and_leaves_the_rest) {
  auto on = make_cpu();
  const std::size_t head_dim = 14, heads = 3; // 10 of 14 columns are turned
  const auto before = random_floats(4 * heads * head_dim, 45);
  auto x = before;
  on->rope(view(x, 4), head_dim, tiny_rope, one_sequence(1000, 4));
  std::vector<double> expected(before.begin(), before.end());
  for (std::size_t row = 0; row < 4; ++row)
    for (std::size_t head = 0; head < heads; ++head)
      for (std::size_t i = 0; i < 5; ++i) {
        const float angle = static_cast<float>(1000 + row) * tiny_rope.inverse_frequencies[i];
        const auto at = (row * heads + head) * head_dim + i;
        const double a = before[at], b = before[at + 5];
        const double cosine = std::cos(double{angle}) * 1.25, sine = std::sin(double{angle}) * 1.25;
        expected[at] = a * cosine - b * sine;
        expected[at + 5] = b * cosine + a * sine;
      }
  BOOST_TEST(worst(x, expected, 1.0) < 3e-7);
}

BOOST_AUTO_TEST_CASE(rope_angles_are_kept_by_positions_and_table) {
  auto on = make_cpu();
  rope_table other = tiny_rope;
  other.inverse_frequencies[2] = 0.02f;
  rope_table stronger = tiny_rope;
  stronger.magnitude = 1.0f;
  const batch two{{{.pages = {}, .first_row = 0, .position = 8, .count = 1},
                   {.pages = {}, .first_row = 1, .position = 3, .count = 1}}};
  // The same calls in a changing order, each against a device that has not seen another.
  const std::vector<std::pair<const rope_table*, batch>> calls{{&tiny_rope, one_sequence(8, 2)},
                                                               {&other, one_sequence(8, 2)},
                                                               {&tiny_rope, two},
                                                               {&stronger, one_sequence(8, 2)},
                                                               {&tiny_rope, one_sequence(7, 2)},
                                                               {&tiny_rope, one_sequence(8, 2)}};
  for (std::size_t i = 0; i < 60; ++i) {
    const auto& [table, rows] = calls[i * 7 % 11 % calls.size()];
    auto x = random_floats(2 * 30, 46), y = x;
    on->rope(view(x, 2), 10, *table, rows);
    make_cpu()->rope(view(y, 2), 10, *table, rows);
    BOOST_TEST(same_bits(x, y), "call " << i);
  }
}

BOOST_AUTO_TEST_CASE(silu_mul_equals_the_oracle_over_the_whole_range) {
  std::vector<float> gate, up;
  for (double value = -120.0; value < 120.0; value += 0.0137) {
    gate.push_back(static_cast<float>(value));
    up.push_back(1.0f);
  }
  for (const auto& name : cpu::usable_instruction_sets()) {
    const with_instruction_set use(name);
    auto on = make_cpu();
    std::vector<float> out(gate.size());
    auto g = gate, u = up;
    on->silu_mul(view(g, 1), view(u, 1), view(out, 1));
    double most = 0.0;
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double expected = gate[i] / (1.0 + std::exp(-double{gate[i]}));
      if (std::abs(expected) > 1e-36)
        most = std::max(most, std::abs(out[i] - expected) / std::abs(expected));
      else
        BOOST_TEST(std::abs(out[i]) < 2e-36);
    }
    BOOST_TEST(most < 3 * FLT_EPSILON, name << " " << most);
  }
}

BOOST_AUTO_TEST_CASE(silu_mul_in_place_and_not_finite_values_pass_through) {
  auto on = make_cpu();
  std::vector<float> gate{1.0f, NAN, INFINITY, -2.0f, 3e38f}, up{2.0f, 1.0f, 1.0f, NAN, 10.0f};
  on->silu_mul(view(gate, 1), view(up, 1), view(gate, 1));
  BOOST_TEST(std::abs(gate[0] - 2.0f / (1.0f + std::exp(-1.0f))) < 1e-6f);
  BOOST_TEST(std::isnan(gate[1]));
  BOOST_TEST(gate[2] == INFINITY);
  BOOST_TEST(std::isnan(gate[3]));
  BOOST_TEST(gate[4] == INFINITY);
}

BOOST_AUTO_TEST_CASE(add_adds_and_respects_strides) {
  auto on = make_cpu();
  auto x = random_floats(3 * 50, 47), out = random_floats(3 * 50, 48);
  const auto before = out;
  on->add({x.data(), 3, 37, 50}, {out.data(), 3, 37, 50});
  for (std::size_t i = 0; i < out.size(); ++i)
    BOOST_TEST(out[i] == (i % 50 < 37 ? before[i] + x[i] : before[i]));
}

BOOST_DATA_TEST_CASE(find_finite_names_each_row, data::make({1, 16, 33, 1000}), columns) {
  auto on = make_cpu(2);
  const std::size_t n = columns;
  const float bad[]{NAN, INFINITY, -INFINITY, -NAN};
  for (std::size_t where = 0; where < n; where += n / 5 + 1) {
    std::vector<float> x(6 * n, FLT_MAX);
    x[0] = -FLT_MAX;
    for (std::size_t i = 0; i < 4; ++i)
      x[(i + 1) * n + where] = bad[i];
    bool finite[6];
    on->find_finite(view(x, 6), finite);
    const bool expected[]{true, false, false, false, false, true};
    BOOST_TEST(finite == expected, boost::test_tools::per_element());
  }
}

BOOST_DATA_TEST_CASE(embed_takes_the_same_rows_from_packed_and_from_table,
                     data::make({dtype::f32, dtype::f16, dtype::bf16}),
                     type) {
  auto on = make_cpu();
  const stored_weight weight(type, 100, 70, 49, 3);
  const auto packed = pack(*on, weight, type);
  auto table = on->table(weight.source());
  BOOST_REQUIRE(table);
  BOOST_TEST((*table)->bytes() == 0u);
  // A shard with the vocabulary entries 1000 ... 1099.
  const std::vector<token_id> ids{1000, 999, 1099, 1100, 1057, 0, 4294967295u, 1057};
  std::vector<float> a(ids.size() * 70, NAN), b(a);
  on->embed(*packed, ids, 1000, view(a, ids.size()));
  on->embed(**table, ids, 1000, view(b, ids.size()));
  BOOST_TEST(same_bits(a, b));
  for (std::size_t r = 0; r < ids.size(); ++r)
    for (std::size_t i = 0; i < 70; ++i) {
      const bool inside = ids[r] >= 1000 && ids[r] < 1100;
      BOOST_REQUIRE(a[r * 70 + i] == (inside ? weight.values[(ids[r] - 1000) * 70 + i] : 0.0f));
    }
}

BOOST_AUTO_TEST_CASE(a_table_keeps_its_source_alive) {
  auto on = make_cpu();
  auto kept = std::make_shared<stored_weight>(dtype::f16, 3, 5, 50);
  const auto values = kept->values;
  auto source = kept->source();
  source.owner = kept;
  const std::weak_ptr<stored_weight> watched = kept;
  kept.reset();
  auto table = on->table(source);
  source.owner.reset();
  BOOST_REQUIRE(table);
  BOOST_TEST(!watched.expired());
  std::vector<float> out(5);
  on->embed(**table, std::vector<token_id>{2}, 0, view(out, 1));
  BOOST_TEST(same_bits(out, {values.begin() + 10, values.end()}));
  table->reset();
  BOOST_TEST(watched.expired());
}

BOOST_AUTO_TEST_CASE(G07_G11_all_other_operations_have_the_same_bits_everywhere) {
  const std::size_t m = 40, n = 1000;
  const auto x = random_floats(m * n, 51, 5.0f), y = random_floats(m * n, 52, 5.0f);
  const auto weight = random_floats(n, 53), head_weight = random_floats(50, 54);
  require_same_bits([&](device& on) {
    auto a = x, b = y;
    on.rms_norm(view(a, m), weight, 1e-5f, view(a, m));
    on.head_norm(view(b, m), 50, head_weight, 1e-5f);
    on.rope(view(a, m), 50, tiny_rope, one_sequence(17, m));
    on.silu_mul(view(a, m), view(b, m), view(b, m));
    on.add(view(a, m), view(b, m));
    return b;
  });
}

BOOST_AUTO_TEST_CASE(make_device_says_what_it_has) {
  auto gpu = make_device("cuda", {});
  if (!gpu)
    BOOST_TEST((gpu.error().code == errc::unsupported), gpu.error().what);
  auto unknown = make_device("tpu", {});
  BOOST_REQUIRE(!unknown);
  BOOST_TEST((unknown.error().code == errc::invalid_argument));
  BOOST_TEST(unknown.error().what.find("\"cpu\"") != std::string::npos);
  BOOST_TEST(make_cpu(2)->describe().find("2 threads") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(threads_are_pinned_or_refused_with_the_cores_that_work) {
  auto none = make_device("cpu", {.threads = 0, .cores = {}});
  BOOST_REQUIRE(!none);
  auto few = make_device("cpu", {.threads = 2, .cores = {0}});
  BOOST_REQUIRE(!few);
  BOOST_TEST(few.error().what.find("only 1 cores") != std::string::npos, few.error().what);
  auto absent = make_device("cpu", {.threads = 1, .cores = {100000}});
  BOOST_REQUIRE(!absent);
  BOOST_TEST((absent.error().code == errc::invalid_argument));
  BOOST_TEST(absent.error().what.find("core 100000") != std::string::npos, absent.error().what);
}

BOOST_AUTO_TEST_CASE(the_machine_is_measured) {
  auto found = cpu::measure_machine(
    {.threads = 1, .cores = {}},
    {.duration = std::chrono::milliseconds(20), .read_region = std::size_t{8} << 20});
  BOOST_REQUIRE(found);
  BOOST_TEST(found->threads == 1u);
  BOOST_TEST(found->read_bytes_per_second > 1e8);
  BOOST_TEST(found->flops_per_second > 1e8);
}
