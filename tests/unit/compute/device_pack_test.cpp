// Packed bytes against those that half.hpp and blocks.hpp make, one value at a time; and what the
// watchers of sources see.

#include "compute/cpu/blocks.hpp"
#include "compute/cpu/panels.hpp"
#include "tests/unit/compute/device_cases.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <algorithm>
#include <cstdint>
#include <mutex>

using namespace troupe;
using namespace troupe::compute;
using namespace troupe::compute::cases;
namespace data = boost::unit_test::data;

namespace {

const auto floats = data::make({dtype::f32, dtype::f16, dtype::bf16});
const auto blocks = data::make({dtype::int8, dtype::int4});

/// A stored row and what is stored there.
struct expected_row {
  const stored_weight* weight;
  std::size_t row;

  const std::byte* data() const {
    return weight->bytes.data() + 1 + row * weight->stride * size_of(weight->stored);
  }
};

/// The packed bytes of some weights together, the plain way.
class reference_panels {
public:
  reference_panels(const std::vector<const stored_weight*>& weights, dtype held)
    : held_(held), columns_(weights.front()->columns) {
    std::vector<expected_row> rows;
    for (const auto* weight : weights)
      for (std::size_t row = 0; row < weight->rows; ++row)
        rows.push_back({weight, row});
    const auto padded = (rows.size() + cpu::panel_width - 1) / cpu::panel_width * cpu::panel_width;
    bytes.resize(held_bytes(held, padded, columns_));
    for (std::size_t row = 0; row < rows.size(); ++row) {
      auto* panel =
        bytes.data() + row / cpu::panel_width * held_bytes(held, cpu::panel_width, columns_);
      if (is_quantised(held))
        put_blocks(rows[row], row % cpu::panel_width, panel);
      else
        put_elements(rows[row], row % cpu::panel_width, panel);
    }
  }

  std::vector<std::byte> bytes;

private:
  void put_elements(const expected_row& from, std::size_t lane, std::byte* panel) {
    for (std::size_t column = 0; column < columns_; ++column)
      cpu::with_format(held_, [&](auto held) {
        using format = decltype(held);
        cpu::with_format(from.weight->stored, [&](auto stored) {
          auto element = cpu::load_element<decltype(stored)>(from.data(), column);
          const auto kept = [&] {
            if constexpr (std::is_same_v<format, decltype(stored)>)
              return element;
            else
              return cpu::from_float<format>(cpu::to_float(element));
          }();
          std::memcpy(
            panel + (column * cpu::panel_width + lane) * sizeof(kept), &kept, sizeof(kept));
        });
      });
  }

  void put_blocks(const expected_row& from, std::size_t lane, std::byte* panel) {
    for (std::size_t begin = 0; begin < columns_; begin += quantised_block) {
      const auto count = std::min(quantised_block, columns_ - begin);
      const auto* values = &from.weight->values[from.row * columns_ + begin];
      cpu::put_row(panel + begin / quantised_block * cpu::panel_block_bytes(held_),
                   held_,
                   lane,
                   cpu::quantise({values, count}, held_));
    }
  }

  dtype held_;
  std::size_t columns_;
};

std::vector<std::byte> bytes_of(const matrix& packed) {
  const auto& panels = dynamic_cast<const cpu::panel_matrix&>(packed);
  return {panels.panel(0), panels.panel(0) + panels.bytes()};
}

std::vector<std::byte>
packed_bytes(device& on, const std::vector<const stored_weight*>& weights, dtype held) {
  std::vector<weight_source> sources;
  for (const auto* weight : weights)
    sources.push_back(weight->source());
  const auto packed = on.pack(sources, held);
  BOOST_REQUIRE(packed);
  return bytes_of(**packed);
}

/// Packs on every instruction set and some teams, and compares each byte.
void check_packing(const std::vector<const stored_weight*>& weights,
                   dtype held,
                   const std::string& what) {
  const reference_panels expected(weights, held);
  for (const auto& name : cpu::usable_instruction_sets()) {
    const with_instruction_set use(name);
    for (std::size_t threads : {1, 3}) {
      auto on = make_cpu(threads);
      const auto found = packed_bytes(*on, weights, held);
      BOOST_REQUIRE(found.size() == expected.bytes.size());
      const auto [a, b] = std::mismatch(found.begin(), found.end(), expected.bytes.begin());
      BOOST_REQUIRE_MESSAGE(a == found.end(),
                            what << ", " << name << ", " << threads << " threads: byte "
                                 << a - found.begin() << " is " << std::to_integer<int>(*a)
                                 << ", not " << std::to_integer<int>(*b));
    }
  }
}

/// Values that quantising finds hard, a kind a block: blocks of one row differ, and rows do.
float hard_value(unsigned kind, std::mt19937& numbers) {
  const auto whole = [&](int low, int high) {
    return static_cast<float>(std::uniform_int_distribution(low, high)(numbers));
  };
  switch (kind % 9) {
  case 0: return std::normal_distribution<float>()(numbers);
  case 1: return (whole(-127, 126) + 0.5f) * 0.25f; // In the middle between two codes,
  case 2: return whole(-254, 254) * 0x1p-9f;        // or on one.
  case 3: return whole(-30, 30) * 0.5f - 7.5f;      // The same at 4 bits.
  case 4: return whole(0, 1) == 0 ? 0.0f : -0.0f;
  case 5: return whole(-200, 200) * 0x1p-149f; // Subnormal;
  case 6: return whole(-100, 100) * 0x1p-133f; // scales that are, or nearly;
  case 7: return std::normal_distribution<float>()(numbers) * 0x1p120f; // and large ones.
  default: return 3.14159f;
  }
}

stored_weight hard_weight(dtype stored, std::size_t rows, std::size_t columns, unsigned seed) {
  std::mt19937 numbers(seed);
  stored_weight weight(stored, rows, columns, seed, seed % 3);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column) {
      const auto value =
        hard_value(static_cast<unsigned>(row + column / quantised_block) + seed, numbers);
      weight.set(row, column, stored == dtype::f16 ? std::clamp(value, -6e4f, 6e4f) : value);
    }
  return weight;
}

/// Every pattern of 16 bits as it is stored; in f32 as upper halves, over lower halves that `below`
/// makes.
void fill_with_bits(stored_weight& weight, std::uint32_t below) {
  for (std::uint32_t i = 0; i < weight.rows * weight.columns; ++i) {
    const std::uint32_t bits = weight.stored == dtype::f32 ? i << 16 | (i * below & 0xffffu) : i;
    const auto at = (i / weight.columns * weight.stride + i % weight.columns);
    std::memcpy(
      weight.bytes.data() + 1 + at * size_of(weight.stored), &bits, size_of(weight.stored));
  }
}

/// What a watcher saw; stops the test where it is not as promised.
class seen_rows final : public row_watcher {
public:
  explicit seen_rows(std::size_t rows) : state_(rows, 'n') {}

  void expect(const range& rows) override { turn(rows, 'n', 'e'); }

  void pass(const range& rows) override {
    orderly_ &= rows.begin == passed_;
    passed_ = rows.end;
    turn(rows, 'e', 'p');
  }

  void release(const range& rows) override { turn(rows, 'p', 'r'); }

  /// Each row was expected, passed in order and was released, in that order, once.
  bool all() const {
    return orderly_ && std::count(state_.begin(), state_.end(), 'r') == std::ssize(state_);
  }

private:
  void turn(const range& rows, char from, char to) {
    const std::lock_guard lock(mutex_);
    for (auto row = rows.begin; row < rows.end; ++row) {
      orderly_ &= state_.at(row) == from;
      state_.at(row) = to;
    }
  }

  std::mutex mutex_;
  std::vector<char> state_;
  std::size_t passed_ = 0;
  bool orderly_ = true;
};

} // namespace

BOOST_DATA_TEST_CASE(every_bit_pattern_is_converted_as_one_value_is, floats* floats, stored, held) {
  for (std::uint32_t below : {0u, 1u, 0x8000u, 0x7fffu, 0x9e3779u}) {
    if (below != 0 && stored != dtype::f32)
      continue;
    stored_weight weight(stored, 64, 1024, 1, 3);
    fill_with_bits(weight, below);
    auto on = make_cpu();
    if (!on->pack(weight.source(), held)) { // Too large ones are refused, here: become 1.
      for (std::size_t i = 0; i < weight.values.size(); ++i)
        cpu::with_format(stored, [&](auto format) {
          const auto* row = weight.source().data + i / 1024 * weight.stride * size_of(stored);
          const float value = cpu::to_float(cpu::load_element<decltype(format)>(row, i % 1024));
          const float kept = held == dtype::f16 ? cpu::to_float(cpu::from_float<cpu::f16>(value))
                                                : cpu::to_float(cpu::from_float<cpu::bf16>(value));
          if (std::isfinite(value) && !std::isfinite(kept))
            weight.set(i / 1024, i % 1024, 1.0f);
        });
    }
    check_packing({&weight}, held, "below " + std::to_string(below));
  }
}

BOOST_DATA_TEST_CASE(elements_of_any_shape_lie_where_they_belong, floats* floats, stored, held) {
  for (std::size_t rows : {1, 31, 32, 70})
    for (std::size_t columns : {1, 31, 32, 33, 100}) {
      const stored_weight weight(stored, rows, columns, 2, 5);
      check_packing({&weight}, held, std::to_string(rows) + " x " + std::to_string(columns));
    }
}

BOOST_DATA_TEST_CASE(blocks_have_the_bits_of_quantise, floats* blocks, stored, held) {
  for (unsigned seed = 0; seed < 9; ++seed)
    for (std::size_t rows : {1, 33, 64})
      for (std::size_t columns : {5, 32, 100, 520}) {
        const auto weight = hard_weight(stored, rows, columns, seed);
        check_packing({&weight},
                      held,
                      std::to_string(rows) + " x " + std::to_string(columns) + ", seed "
                        + std::to_string(seed));
      }
}

BOOST_DATA_TEST_CASE(sources_of_several_types_share_a_panel,
                     data::make({dtype::f32, dtype::f16, dtype::bf16, dtype::int8, dtype::int4}),
                     held) {
  const stored_weight a(dtype::f16, 20, 100, 3), b(dtype::bf16, 50, 100, 4, 2),
    c(dtype::f32, 3, 100, 5, 1);
  check_packing({&a, &b, &c}, held, "three types");
  check_packing({&b, &b}, held, "one type twice");
}

BOOST_DATA_TEST_CASE(the_first_element_that_does_not_fit_is_named,
                     data::make({dtype::f16, dtype::int8, dtype::int4}),
                     held) {
  const stored_weight first(dtype::f32, 45, 300, 6);
  for (std::size_t threads : {1, 4})
    for (unsigned seed = 0; seed < 20; ++seed) {
      stored_weight second(dtype::f32, 700, 300, 7);
      std::mt19937 numbers(seed);
      std::size_t earliest = second.values.size();
      for (int i = 0; i < 5; ++i) {
        const std::size_t at = numbers() % second.values.size();
        second.set(at / 300, at % 300, held == dtype::f16 ? 1e6f : INFINITY);
        earliest = std::min(earliest, at);
      }
      auto sources = std::vector{first.source(), second.source()};
      sources[1].name = "the second";
      const auto refused = make_cpu(threads)->pack(sources, held);
      BOOST_REQUIRE(!refused);
      const auto column = earliest % 300;
      const auto named = is_quantised(held) ? column / quantised_block * quantised_block : column;
      const auto expected = "the second: element [" + std::to_string(earliest / 300) + ", "
                            + std::to_string(named) + "] is too large";
      BOOST_TEST(refused.error().what.starts_with(expected),
                 refused.error().what << " / " << expected);
    }
}

BOOST_DATA_TEST_CASE(watchers_see_every_row_once_and_in_order,
                     data::make({dtype::bf16, dtype::int4}) * data::make({1, 2, 4}),
                     held,
                     threads) {
  auto on = make_cpu(static_cast<std::size_t>(threads));
  for (std::size_t columns : {64, 4000}) {
    const stored_weight a(dtype::bf16, 1000, columns, 8), b(dtype::bf16, 45, columns, 9),
      c(dtype::bf16, 7, columns, 10);
    seen_rows of_a(1000), of_c(7);
    auto sources = std::vector{a.source(), b.source(), c.source()};
    sources[0].watcher = &of_a;
    sources[2].watcher = &of_c;
    const auto packed = on->pack(sources, held);
    BOOST_REQUIRE(packed);
    BOOST_TEST(of_a.all());
    BOOST_TEST(of_c.all());
    BOOST_TEST((bytes_of(**packed) == reference_panels({&a, &b, &c}, held).bytes));
  }
}
