#include "compute/cpu/blocks.hpp"
#include "tests/unit/compute/device_cases.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <algorithm>
#include <cstdint>

using namespace troupe;
using namespace troupe::compute;
using namespace troupe::compute::cases;
namespace data = boost::unit_test::data;

namespace {

const auto both = data::make({dtype::int8, dtype::int4});

std::vector<float> product(device& on, const matrix& weights, std::vector<float> x) {
  const auto m = x.size() / weights.columns();
  std::vector<float> out(m * weights.rows(), NAN);
  on.matmul(
    weights, {x.data(), m, weights.columns()}, {}, {out.data(), m, weights.rows()}, tensor{});
  return out;
}

std::vector<float> row_of(const std::vector<float>& values, std::size_t width, std::size_t row) {
  return {values.begin() + row * width, values.begin() + (row + 1) * width};
}

/// The weight as it is held: what look-ups give.
std::vector<float> held_values(device& on, const matrix& packed) {
  std::vector<token_id> ids(packed.rows());
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<token_id>(i);
  std::vector<float> out(packed.rows() * packed.columns());
  on.embed(packed, ids, 0, {out.data(), packed.rows(), packed.columns()});
  return out;
}

/// One row of x in whole numbers, block by block, as the header of matmul_blocks.cpp says.
struct quantised_x {
  std::vector<int> codes;
  std::vector<float> scales;

  explicit quantised_x(const float* x, std::size_t count) : codes(count) {
    for (std::size_t begin = 0; begin < count; begin += quantised_block) {
      const auto end = std::min(begin + quantised_block, count);
      float largest = 0.0f;
      for (auto i = begin; i < end; ++i)
        largest = std::max(largest, std::abs(x[i]));
      for (auto i = begin; i < end; ++i)
        codes[i] = static_cast<int>(std::nearbyint(x[i] * (127.0f / largest)));
      scales.push_back(largest / 127.0f);
    }
  }
};

/// What one output element has to be, bit by bit.
float expected_sum(dtype held, const float* weights, std::size_t count, const quantised_x& x) {
  float sum = 0.0f;
  for (std::size_t begin = 0; begin < count; begin += quantised_block) {
    const auto size = std::min(quantised_block, count - begin);
    const auto block = cpu::quantise({weights + begin, size}, held);
    const float scale = x.scales[begin / quantised_block];
    int dot = 0, total = 0;
    for (std::size_t i = 0; i < size; ++i) {
      dot += (block.codes[i] - (held == dtype::int8 ? 128 : 0)) * x.codes[begin + i];
      total += x.codes[begin + i];
    }
    sum = std::fma(static_cast<float>(dot), block.scale * scale, sum);
    if (held == dtype::int4)
      sum = std::fma(block.minimum, scale * static_cast<float>(total), sum);
  }
  return sum;
}

class without_dot_products {
public:
  explicit without_dot_products(bool without) { cpu::use_dot_products(!without); }

  ~without_dot_products() { cpu::use_dot_products(true); }
};

} // namespace

BOOST_DATA_TEST_CASE(a_block_is_as_near_as_its_steps_allow, both, held) {
  const auto values = random_floats(quantised_block, 1, 3.0f);
  const auto block = cpu::quantise(values, held);
  const float half_step = block.scale * 0.501f;
  BOOST_TEST(block.scale <= (held == dtype::int8 ? 3.0f / 127 : 6.1f / 15) * 1.01f);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float found = held == dtype::int8 ? block.scale * (float(block.codes[i]) - 128.0f)
                                            : block.scale * float(block.codes[i]) + block.minimum;
    BOOST_TEST(std::abs(found - values[i]) <= half_step, i << ": " << found << " " << values[i]);
  }
}

BOOST_DATA_TEST_CASE(blocks_of_extreme_values_are_kept, both, held) {
  for (float value : {0.0f, 1e-38f, -1e-41f, 1e30f, -3e38f, 1.0f}) {
    const std::vector<float> same(quantised_block, value);
    const auto block = cpu::quantise(same, held);
    const float found = held == dtype::int8 ? block.scale * (float(block.codes[5]) - 128.0f)
                                            : block.scale * float(block.codes[5]) + block.minimum;
    BOOST_TEST(std::abs(found - value) <= std::abs(value) / 100 + 1e-40f, value << " " << found);
  }
}

BOOST_DATA_TEST_CASE(look_ups_give_what_was_quantised_and_the_bytes_are_those_of_the_plan,
                     both,
                     held) {
  auto on = make_cpu(2);
  for (auto stored : {dtype::f32, dtype::f16, dtype::bf16})
    for (std::size_t columns : {7, 32, 100}) {
      const stored_weight weight(stored, 70, columns, 2, 3);
      const auto packed = pack(*on, weight, held);
      BOOST_TEST(packed->bytes() == held_bytes(held, 96, columns));
      const auto found = held_values(*on, *packed);
      for (std::size_t i = 0; i < found.size(); ++i) {
        const auto begin = i % columns / quantised_block * quantised_block;
        const auto size = std::min(quantised_block, columns - begin);
        const auto block =
          cpu::quantise({&weight.values[i / columns * columns + begin], size}, held);
        const auto code = float(block.codes[i % columns - begin]);
        const float expected =
          held == dtype::int8 ? block.scale * (code - 128.0f) : block.scale * code + block.minimum;
        BOOST_REQUIRE_EQUAL(found[i], expected);
      }
    }
}

BOOST_DATA_TEST_CASE(a_product_is_exact_in_each_block_on_every_fused_instruction_set,
                     both* data::make({7, 64, 600}),
                     held,
                     columns) {
  const std::size_t rows = 45, m = 20, width = columns;
  const stored_weight weight(dtype::f32, rows, width, 3);
  const auto x = random_floats(width * m, 4);
  std::vector<float> expected;
  for (std::size_t r = 0; r < m; ++r) {
    const quantised_x row(&x[r * width], width);
    for (std::size_t n = 0; n < rows; ++n)
      expected.push_back(expected_sum(held, &weight.values[n * width], width, row));
  }
  for (const auto& name : fused_instruction_sets())
    for (bool steps : {false, true}) {
      const with_instruction_set use(name);
      const without_dot_products only(steps);
      for (std::size_t threads : {1, 3}) {
        auto on = make_cpu(threads);
        const auto packed = pack(*on, weight, held);
        BOOST_TEST(same_bits(product(*on, *packed, x), expected), name << ", steps " << steps);
        BOOST_TEST(same_bits(product(*on, *packed, row_of(x, width, 7)), row_of(expected, rows, 7)),
                   name << ", one row");
      }
    }
}

BOOST_DATA_TEST_CASE(whole_numbers_do_not_saturate_at_the_ends_of_their_range, both, held) {
  // All codes at an end, of both signs: 255 or 1 (15 or 0) times 127 or -127.
  const std::size_t columns = 4096, rows = 33;
  for (float weight_sign : {1.0f, -1.0f})
    for (float x_sign : {1.0f, -1.0f}) {
      stored_weight weight(dtype::f32, rows, columns, 5);
      for (std::size_t i = 0; i < rows * columns; ++i)
        weight.set(
          i / columns, i % columns, i % 32 == 0 && held == dtype::int4 ? 0.0f : weight_sign);
      const std::vector<float> x(columns * 13, x_sign);
      const double whole =
        weight_sign * x_sign * double(columns) * (held == dtype::int4 ? 31 : 32) / 32;
      for (const auto& name : cpu::usable_instruction_sets())
        for (bool steps : {false, true}) {
          const with_instruction_set use(name);
          const without_dot_products only(steps);
          auto on = make_cpu();
          const auto found = product(*on, *pack(*on, weight, held), x);
          for (float value : found)
            BOOST_REQUIRE_MESSAGE(std::abs(value - whole) < 0.01 * columns,
                                  name << " steps " << steps << ": " << value << " not " << whole);
        }
    }
}

BOOST_DATA_TEST_CASE(G04_a_quantised_row_has_the_same_bits_alone_and_in_any_batch, both, held) {
  auto on = make_cpu();
  const std::size_t rows = 70, columns = 700;
  const stored_weight weight(dtype::bf16, rows, columns, 6);
  const auto packed = pack(*on, weight, held);
  const auto x = random_floats(1000 * columns, 7);
  for (std::size_t m : {2, 5, 6, 7, 12, 13, 24, 25, 40, 100, 1000}) {
    const auto together = product(*on, *packed, {x.begin(), x.begin() + m * columns});
    for (std::size_t r = 0; r < m; r += 1 + m / 17)
      BOOST_REQUIRE_MESSAGE(
        same_bits(row_of(together, rows, r), product(*on, *packed, row_of(x, columns, r))),
        "row " << r << " of " << m);
  }
}

BOOST_DATA_TEST_CASE(the_error_of_a_product_is_that_of_its_steps, both, held) {
  auto on = make_cpu();
  const std::size_t rows = 64, columns = 2048, m = 8;
  const stored_weight weight(dtype::bf16, rows, columns, 8);
  const auto x = random_floats(m * columns, 9);
  const auto found = product(*on, *pack(*on, weight, held), x);
  double wrong = 0.0, size = 0.0;
  for (std::size_t r = 0; r < m; ++r)
    for (std::size_t n = 0; n < rows; ++n) {
      double sum = 0.0;
      for (std::size_t k = 0; k < columns; ++k)
        sum += double{x[r * columns + k]} * weight.values[n * columns + k];
      wrong += (found[r * rows + n] - sum) * (found[r * rows + n] - sum);
      size += sum * sum;
    }
  const double relative = std::sqrt(wrong / size);
  BOOST_TEST_MESSAGE(to_string(held) << ": relative error " << relative);
  BOOST_TEST(relative < (held == dtype::int8 ? 0.008 : 0.08));
  BOOST_TEST(relative > 1e-4); // Otherwise it was not quantised.
}

BOOST_DATA_TEST_CASE(G01_what_is_not_finite_is_refused_or_found, both, held) {
  auto on = make_cpu();
  stored_weight weight(dtype::f32, 40, 100, 10);
  const auto packed = pack(*on, weight, held);
  for (float bad : {INFINITY, -INFINITY, NAN}) {
    auto x = random_floats(200, 11);
    x[100 + 37] = bad;
    const auto found = product(*on, *packed, x);
    BOOST_TEST(
      std::all_of(found.begin(), found.begin() + 40, [](float v) { return std::isfinite(v); }));
    BOOST_TEST(
      std::none_of(found.begin() + 40, found.end(), [](float v) { return std::isfinite(v); }));
    weight.set(33, 71, bad);
    const auto refused = on->pack(weight.source(), held);
    BOOST_REQUIRE(!refused);
    BOOST_TEST((refused.error().code == errc::invalid_model));
    BOOST_TEST(refused.error().what.find(std::string(to_string(held))) != std::string::npos,
               refused.error().what);
  }
}
