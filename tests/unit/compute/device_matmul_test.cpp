#include "tests/unit/compute/device_cases.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

using namespace troupe;
using namespace troupe::compute;
using namespace troupe::compute::cases;
namespace data = boost::unit_test::data;

namespace {

const std::vector<std::size_t> odd_rows{1, 33, 100};
const std::vector<std::size_t> odd_columns{7, 64, 1000};

/// x [m, columns] times the weight, all rows at once.
std::vector<float> product(device& on,
                           const matrix& weights,
                           std::vector<float> x,
                           std::span<const float> bias = {},
                           const std::vector<float>& add_to = {}) {
  const auto m = x.size() / weights.columns();
  auto out = add_to.empty() ? std::vector<float>(m * weights.rows(), NAN) : add_to;
  on.matmul(weights,
            {x.data(), m, weights.columns()},
            bias,
            {out.data(), m, weights.rows()},
            add_to.empty() ? tensor{} : tensor{out.data(), m, weights.rows()});
  return out;
}

std::vector<double> expected_product(const stored_weight& weight, const std::vector<float>& x) {
  const auto m = x.size() / weight.columns;
  std::vector<double> out(m * weight.rows, 0.0);
  for (std::size_t r = 0; r < m; ++r)
    for (std::size_t n = 0; n < weight.rows; ++n)
      for (std::size_t k = 0; k < weight.columns; ++k)
        out[r * weight.rows + n] +=
          double{x[r * weight.columns + k]} * weight.values[n * weight.columns + k];
  return out;
}

std::vector<float> row_of(const std::vector<float>& values, std::size_t width, std::size_t row) {
  return {values.begin() + row * width, values.begin() + (row + 1) * width};
}

/// The chain that the header of tile-inl.hpp promises, one fused multiply-add at a time.
float chain(const float* x, const float* w, std::size_t count) {
  float sum = 0.0f;
  for (std::size_t k = 0; k < count; ++k)
    sum = std::fma(x[k], w[k], sum);
  return sum;
}

} // namespace

BOOST_DATA_TEST_CASE(matmul_equals_the_oracle_on_odd_shapes,
                     data::make({dtype::f32, dtype::f16, dtype::bf16}) * data::make(odd_rows)
                       * data::make(odd_columns),
                     type,
                     rows,
                     columns) {
  auto on = make_cpu();
  const stored_weight weight(type, rows, columns, 1, 5);
  const auto packed = pack(*on, weight, type);
  BOOST_TEST(packed->rows() == rows);
  BOOST_TEST(packed->columns() == columns);
  BOOST_TEST((packed->held() == type));
  for (std::size_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 64, 100}) {
    const auto x = random_floats(m * columns, 2);
    const auto found = product(*on, *packed, x);
    BOOST_TEST(worst(found, expected_product(weight, x), std::sqrt(double(columns))) < 3e-6,
               "m " << m);
  }
}

BOOST_AUTO_TEST_CASE(matmul_is_one_chain_an_element_on_every_fused_instruction_set) {
  const stored_weight weight(dtype::bf16, 40, 600, 3);
  const auto x = random_floats(600 * 20, 4);
  std::vector<float> expected;
  for (std::size_t r = 0; r < 20; ++r)
    for (std::size_t n = 0; n < 40; ++n)
      expected.push_back(chain(&x[r * 600], &weight.values[n * 600], 600));
  for (const auto& name : fused_instruction_sets()) {
    const with_instruction_set use(name);
    auto on = make_cpu();
    const auto packed = pack(*on, weight, dtype::bf16);
    BOOST_TEST(same_bits(product(*on, *packed, x), expected), name);
    BOOST_TEST(same_bits(product(*on, *packed, row_of(x, 600, 7)), row_of(expected, 40, 7)), name);
  }
}

BOOST_DATA_TEST_CASE(G04_a_row_has_the_same_bits_alone_and_in_any_batch,
                     data::make({dtype::f32, dtype::f16, dtype::bf16}),
                     type) {
  auto on = make_cpu();
  const std::size_t rows = 100, columns = 1000;
  const stored_weight weight(type, rows, columns, 5);
  const auto packed = pack(*on, weight, type);
  const auto x = random_floats(100 * columns, 6);
  std::vector<std::vector<float>> alone;
  for (std::size_t r = 0; r < 100; ++r)
    alone.push_back(product(*on, *packed, row_of(x, columns, r)));
  for (std::size_t m = 2; m <= 100; ++m) {
    const auto together = product(*on, *packed, {x.begin(), x.begin() + m * columns});
    for (std::size_t r = 0; r < m; ++r)
      BOOST_REQUIRE_MESSAGE(same_bits(row_of(together, rows, r), alone[r]),
                            "row " << r << " of " << m);
  }
}

BOOST_AUTO_TEST_CASE(G04_many_rows_pass_the_cache_in_several_parts_with_the_same_bits) {
  auto on = make_cpu();
  const stored_weight weight(dtype::bf16, 40, 48, 7);
  const auto packed = pack(*on, weight, dtype::bf16);
  const auto x = random_floats(4096 * 48, 8);
  const auto together = product(*on, *packed, x);
  for (std::size_t r = 0; r < 4096; r += 61)
    BOOST_TEST(same_bits(row_of(together, 40, r), product(*on, *packed, row_of(x, 48, r))));
}

BOOST_AUTO_TEST_CASE(G04_rows_that_fill_the_cache_have_the_same_bits) {
  // More of x than any second-level cache holds: panels share its blocks of columns.
  const std::size_t rows = 200, columns = 6000, m = 500;
  const stored_weight weight(dtype::bf16, rows, columns, 25);
  const auto x = random_floats(m * columns, 26);
  for (std::size_t threads : {1, 2}) {
    auto on = make_cpu(threads);
    const auto packed = pack(*on, weight, dtype::bf16);
    const auto together = product(*on, *packed, x);
    for (std::size_t r = 0; r < m; r += 83)
      BOOST_TEST(same_bits(row_of(together, rows, r), product(*on, *packed, row_of(x, columns, r))),
                 "row " << r << ", " << threads << " threads");
  }
}

BOOST_AUTO_TEST_CASE(several_sources_make_one_weight_with_the_bits_of_each_alone) {
  // Heights that are no multiple of a panel, and each source stored in its own way.
  auto on = make_cpu(2);
  const std::vector<stored_weight> parts{
    {dtype::bf16, 45, 300, 27}, {dtype::f32, 1, 300, 28, 4}, {dtype::f16, 70, 300, 29}};
  std::vector<weight_source> sources;
  for (const auto& part : parts)
    sources.push_back(part.source());
  auto made = on->pack(sources, dtype::f32);
  BOOST_REQUIRE(made);
  BOOST_TEST((*made)->rows() == 116u);
  for (std::size_t m : {1, 5, 40}) {
    const auto x = random_floats(m * 300, 30);
    const auto found = product(*on, **made, x);
    std::vector<float> expected;
    std::vector<std::vector<float>> alone;
    for (const auto& part : parts)
      alone.push_back(product(*on, *pack(*on, part, dtype::f32), x));
    for (std::size_t r = 0; r < m; ++r)
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto row = row_of(alone[i], parts[i].rows, r);
        expected.insert(expected.end(), row.begin(), row.end());
      }
    BOOST_TEST(same_bits(found, expected), "m " << m);
  }
}

BOOST_AUTO_TEST_CASE(G01_a_value_that_does_not_fit_is_named_with_its_source) {
  auto on = make_cpu();
  const stored_weight first(dtype::bf16, 45, 30, 31);
  stored_weight second(dtype::bf16, 50, 30, 32);
  second.set(7, 21, 1e5f);
  std::vector<weight_source> sources{first.source(), second.source()};
  sources[0].name = "tensor 'a'";
  sources[1].name = "tensor 'b'";
  const auto made = on->pack(sources, dtype::f16);
  BOOST_REQUIRE(!made);
  BOOST_TEST(made.error().what.find("tensor 'b': element [7, 21]") == 0, made.error().what);
}

BOOST_DATA_TEST_CASE(G07_G11_matmul_has_the_same_bits_on_any_threads_and_instruction_set,
                     data::make({dtype::f32, dtype::f16, dtype::bf16}),
                     type) {
  const std::size_t rows = 333, columns = 520;
  const stored_weight weight(type, rows, columns, 9, 3);
  const auto x = random_floats(100 * columns, 10);
  for (std::size_t m : {1, 3, 8, 13, 25, 100}) {
    const std::vector<float> some(x.begin(), x.begin() + m * columns);
    std::vector<float> first;
    for (const auto& name : fused_instruction_sets()) {
      const with_instruction_set use(name);
      for (std::size_t threads : {1, 2, 3}) {
        auto on = make_cpu(threads);
        const auto packed = pack(*on, weight, type);
        const auto found = product(*on, *packed, some);
        if (first.empty())
          first = found;
        BOOST_TEST(same_bits(found, first), name << ", " << threads << " threads, m " << m);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(matmul_without_fused_operations_is_close) {
  for (const auto& name : cpu::usable_instruction_sets()) {
    const with_instruction_set use(name);
    auto on = make_cpu(2);
    BOOST_TEST(on->describe().find(name) != std::string::npos, on->describe());
    for (auto type : {dtype::f32, dtype::f16, dtype::bf16}) {
      const stored_weight weight(type, 70, 300, 11);
      const auto packed = pack(*on, weight, type);
      for (std::size_t m : {1, 4, 40}) {
        const auto x = random_floats(m * 300, 12);
        BOOST_TEST(worst(product(*on, *packed, x), expected_product(weight, x), 17.0) < 3e-6, name);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(matmul_adds_the_bias_and_what_was_there_once) {
  auto on = make_cpu();
  const stored_weight weight(dtype::f32, 37, 300, 13);
  const auto packed = pack(*on, weight, dtype::f32);
  const auto bias = random_floats(37, 14);
  for (std::size_t m : {1, 20}) {
    const auto x = random_floats(m * 300, 15);
    const auto before = random_floats(m * 37, 16);
    const auto plain = product(*on, *packed, x);
    auto biased = plain, both = plain;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      biased[i] = plain[i] + bias[i % 37];
      both[i] = before[i] + biased[i];
    }
    BOOST_TEST(same_bits(product(*on, *packed, x, bias), biased));
    BOOST_TEST(same_bits(product(*on, *packed, x, bias, before), both));
  }
}

BOOST_AUTO_TEST_CASE(matmul_writes_nothing_beside_its_columns) {
  auto on = make_cpu();
  const stored_weight weight(dtype::f32, 37, 50, 17);
  const auto packed = pack(*on, weight, dtype::f32);
  for (std::size_t m : {1, 3, 30}) {
    auto x = random_floats(m * 60, 18);
    std::vector<float> out(m * 45, 7.0f);
    on->matmul(*packed, {x.data(), m, 50, 60}, {}, {out.data() + 4, m, 37, 45}, {});
    for (std::size_t r = 0; r < m; ++r)
      for (std::size_t i = 0; i < 45; ++i)
        BOOST_TEST(((i < 4 || i >= 41) == (out[r * 45 + i] == 7.0f)));
  }
}

BOOST_AUTO_TEST_CASE(extremes_of_16_bits_are_computed_exactly) {
  // Largest, smallest normal, subnormals, infinity: times 1 they come out as they are.
  const std::vector<float> f16_values{65504.0f, 0x1p-14f, 0x1p-24f, -0x3p-24f, INFINITY, 1.0f};
  const std::vector<float> bf16_values{0x1.fep127f, 0x1p-126f, 0x1p-133f, -0x5p-133f, INFINITY};
  for (const auto& name : cpu::usable_instruction_sets()) {
    const with_instruction_set use(name);
    for (auto type : {dtype::f16, dtype::bf16}) {
      const auto& values = type == dtype::f16 ? f16_values : bf16_values;
      stored_weight weight(type, values.size(), 1, 19);
      for (std::size_t i = 0; i < values.size(); ++i)
        weight.set(i, 0, values[i]);
      auto on = make_cpu();
      const auto packed = pack(*on, weight, type);
      BOOST_TEST(product(*on, *packed, {1.0f}) == values, boost::test_tools::per_element());
      const auto many = product(*on, *packed, std::vector<float>(30, 1.0f));
      BOOST_TEST(row_of(many, values.size(), 29) == values, boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(every_f16_is_converted_alike_in_vectors_and_alone) {
  stored_weight weight(dtype::f16, 65536, 1, 20);
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    std::memcpy(weight.bytes.data() + 1 + bits * 2, &half, 2);
  }
  for (const auto& name : cpu::usable_instruction_sets()) {
    const with_instruction_set use(name);
    auto on = make_cpu();
    const auto found = product(*on, *pack(*on, weight, dtype::f16), {1.0f});
    std::size_t wrong = 0;
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const float value = cpu::to_float(cpu::f16{static_cast<std::uint16_t>(bits)});
      const bool nan = (bits & 0x7fff) > 0x7c00;
      wrong += nan ? !std::isnan(found[bits]) : found[bits] != value;
      if (!nan)
        wrong += cpu::from_float<cpu::f16>(value).bits != bits;
    }
    BOOST_TEST(wrong == 0u, name);
  }
}

BOOST_AUTO_TEST_CASE(pack_converts_between_all_dtypes) {
  auto on = make_cpu(2);
  for (auto stored : {dtype::f32, dtype::f16, dtype::bf16}) {
    const stored_weight weight(stored, 70, 130, 21, 9);
    for (auto hold : {dtype::f32, dtype::f16, dtype::bf16}) {
      const auto packed = pack(*on, weight, hold);
      BOOST_TEST(packed->bytes() == 96 * 130 * size_of(hold));
      std::vector<token_id> ids(70);
      for (std::size_t i = 0; i < ids.size(); ++i)
        ids[i] = static_cast<token_id>(i);
      std::vector<float> out(70 * 130);
      on->embed(*packed, ids, 0, {out.data(), 70, 130});
      std::vector<float> expected;
      for (float value : weight.values)
        cpu::with_format(hold, [&](auto format) {
          expected.push_back(cpu::to_float(cpu::from_float<decltype(format)>(value)));
        });
      BOOST_TEST(same_bits(out, expected), to_string(stored) << " as " << to_string(hold));
    }
  }
}

BOOST_AUTO_TEST_CASE(G01_a_weight_that_f16_cannot_hold_is_refused_with_its_place) {
  auto on = make_cpu(2);
  stored_weight weight(dtype::bf16, 300, 200, 22);
  weight.set(250, 3, -1e5f);
  weight.set(131, 77, 1e5f);
  auto packed = on->pack(weight.source(), dtype::f16);
  BOOST_REQUIRE(!packed);
  BOOST_TEST((packed.error().code == errc::invalid_model));
  BOOST_TEST(packed.error().what.find("[131, 77]") != std::string::npos, packed.error().what);
  BOOST_TEST(packed.error().what.find("bf16") != std::string::npos, packed.error().what);
  BOOST_TEST(static_cast<bool>(on->pack(weight.source(), dtype::bf16)));
}

BOOST_AUTO_TEST_CASE(G03_16_bit_weights_are_computed_in_f32_and_the_device_says_so) {
  auto on = make_cpu();
  BOOST_TEST(on->describe().find("weights of 16 bits are computed in f32") != std::string::npos);
  // 1 + 2^-8 per addend would vanish in bf16, and 70000 would overflow f16.
  stored_weight weight(dtype::bf16, 1, 257, 23);
  for (std::size_t i = 0; i < 257; ++i)
    weight.set(0, i, i == 0 ? 1.0f : 0x1p-8f);
  BOOST_TEST(product(*on, *pack(*on, weight, dtype::bf16), std::vector<float>(257, 1.0f))[0]
             == 2.0f);
  stored_weight large(dtype::f16, 1, 2, 24);
  large.set(0, 0, 35000.0f);
  large.set(0, 1, 35000.0f);
  const float half = large.values[0];
  BOOST_TEST(product(*on, *pack(*on, large, dtype::f16), {1.0f, 1.0f})[0] == 2 * half);
}

BOOST_DATA_TEST_CASE(E47_a_long_product_shows_that_it_gets_on,
                     data::make({dtype::f32, dtype::bf16, dtype::int8}),
                     type) {
  const std::size_t rows = 2048, columns = 512;
  const stored_weight weight(dtype::f32, rows, columns, 9);
  const auto x = random_floats(300 * columns, 10);
  for (std::size_t threads : {1, 2}) {
    std::atomic<std::uint64_t> pulse{0};
    device_options options;
    options.threads = threads;
    options.pulse = &pulse;
    const auto on = make_device("cpu", options);
    BOOST_REQUIRE(on);
    const auto packed = pack(**on, weight, type);
    const auto before = pulse.load();
    product(**on, *packed, x);
    BOOST_TEST(pulse.load() - before > 4u); // the operation alone would be one
  }
}
