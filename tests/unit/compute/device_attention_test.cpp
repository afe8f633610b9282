#include "compute/cpu/half.hpp"
#include "tests/unit/compute/device_cases.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <algorithm>
#include <numeric>

using namespace troupe;
using namespace troupe::compute;
using namespace troupe::compute::cases;
namespace data = boost::unit_test::data;

namespace {

struct shape {
  std::size_t heads, kv_heads, head_dim, window;
  std::vector<std::uint32_t> kv_head_of;
  dtype held = dtype::f32;
};

std::ostream& operator<<(std::ostream& out, const shape& s) {
  return out << s.heads << " heads of " << s.head_dim << " on " << s.kv_heads << ", window "
             << s.window << ", held as " << to_string(s.held);
}

/// Groups of equal size, one head a group, a map that is no division, 13 heads of 20, long heads.
const std::vector<shape> shapes{
  {4, 2, 16, 0, {0, 0, 1, 1}},
  {3, 3, 64, 0, {0, 1, 2}},
  {5, 2, 32, 0, {0, 0, 0, 1, 1}},
  {5, 2, 6, 7, {1, 0, 0, 1, 0}},
  {13, 13, 20, 0, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
  {2, 1, 256, 0, {0, 0}},
  {4, 2, 16, 33, {0, 0, 1, 1}},
  {4, 2, 16, 64, {0, 0, 1, 1}},
  {2, 1, 2, 1, {0, 0}},
  {4, 2, 64, 0, {0, 0, 1, 1}, dtype::f16},
  {5, 2, 6, 7, {1, 0, 0, 1, 0}, dtype::f16},
  {4, 2, 64, 0, {0, 0, 1, 1}, dtype::bf16},
  {13, 13, 20, 33, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, dtype::bf16},
};

/// What a value is once it was stored.
float kept(float value, dtype held) {
  return cpu::with_format(held, [&](auto format) {
    return cpu::to_float(cpu::from_float<decltype(format)>(value));
  });
}

/// One sequence: all its queries, keys and values.
struct sequence {
  std::size_t length;
  std::vector<float> queries, keys, values;

  sequence(const shape& s, std::size_t count, unsigned seed)
    : length(count), queries(random_floats(count * s.heads * s.head_dim, seed, 2.0f)),
      keys(random_floats(count * s.kv_heads * s.head_dim, seed + 1, 2.0f)),
      values(random_floats(count * s.kv_heads * s.head_dim, seed + 2)) {}
};

constexpr std::size_t layer = 1;

float scale_of(const shape& s) {
  return 1.0f / std::sqrt(static_cast<float>(s.head_dim));
}

attention_call call_of(const shape& s) {
  return {.layer = layer,
          .heads = s.heads,
          .kv_heads = s.kv_heads,
          .head_dim = s.head_dim,
          .scale = scale_of(s),
          .window = s.window,
          .kv_head_of = s.kv_head_of};
}

/// The plain definition in double.
std::vector<double> expected_attention(const shape& s, const sequence& q) {
  std::vector<double> out(q.length * s.heads * s.head_dim, 0.0);
  for (std::size_t row = 0; row < q.length; ++row) {
    const auto first = s.window > 0 && row + 1 > s.window ? row + 1 - s.window : 0;
    for (std::size_t head = 0; head < s.heads; ++head) {
      const auto at = (row * s.heads + head) * s.head_dim;
      const auto kv = [&](std::size_t key) {
        return (key * s.kv_heads + s.kv_head_of[head]) * s.head_dim;
      };
      std::vector<double> scores;
      for (auto key = first; key <= row; ++key) {
        double score = 0.0;
        for (std::size_t d = 0; d < s.head_dim; ++d)
          score += double{q.queries[at + d]} * kept(q.keys[kv(key) + d], s.held);
        scores.push_back(score * scale_of(s));
      }
      const double highest = *std::max_element(scores.begin(), scores.end());
      double total = 0.0;
      for (auto& score : scores)
        total += score = std::exp(score - highest);
      for (auto key = first; key <= row; ++key)
        for (std::size_t d = 0; d < s.head_dim; ++d)
          out[at + d] += scores[key - first] / total * kept(q.values[kv(key) + d], s.held);
    }
  }
  return out;
}

/// A cache whose every byte is a NaN before the first key is stored, and sequences in it.
class state {
public:
  state(device& on, const shape& s, std::size_t pages) : on_(on), shape_(s) {
    const kv_shape kv{.layers = 3,
                      .kv_heads = s.kv_heads,
                      .head_dim = s.head_dim,
                      .pages = pages,
                      .held = s.held};
    auto made = on.make_kv_cache(kv);
    BOOST_REQUIRE(made);
    cache_ = std::move(*made);
    BOOST_TEST(cache_->bytes() == pages * kv_cache::page_bytes(kv));
    const auto columns = s.kv_heads * s.head_dim;
    std::vector<float> poison(pages * kv_page_tokens * columns, NAN);
    std::vector<page_id> all;
    for (std::size_t page = 0; page < pages; ++page)
      all.push_back(static_cast<page_id>(page));
    const auto rows = static_cast<std::uint32_t>(pages * kv_page_tokens);
    const batch everything{{{.pages = all, .first_row = 0, .position = 0, .count = rows}}};
    for (std::size_t l = 0; l < kv.layers; ++l)
      on.store_kv(
        *cache_, l, everything, {poison.data(), rows, columns}, {poison.data(), rows, columns});
  }

  /// Rows [position, position + count) of each sequence as one step; their outputs in that order.
  struct part {
    const sequence* of;
    std::size_t position, count;
    std::vector<page_id> pages;
  };

  std::vector<float> step(const std::vector<part>& parts) {
    batch rows;
    std::vector<float> queries, keys, values;
    for (const auto& p : parts) {
      const auto append =
        [&](std::vector<float>& to, const std::vector<float>& from, std::size_t width) {
          to.insert(to.end(),
                    from.begin() + p.position * width,
                    from.begin() + (p.position + p.count) * width);
        };
      append(queries, p.of->queries, shape_.heads * shape_.head_dim);
      append(keys, p.of->keys, shape_.kv_heads * shape_.head_dim);
      append(values, p.of->values, shape_.kv_heads * shape_.head_dim);
      rows.sequences.push_back({.pages = p.pages,
                                .first_row = static_cast<std::uint32_t>(rows.rows()),
                                .position = static_cast<std::uint32_t>(p.position),
                                .count = static_cast<std::uint32_t>(p.count)});
    }
    const auto m = rows.rows();
    const auto kv_columns = shape_.kv_heads * shape_.head_dim;
    on_.store_kv(
      *cache_, layer, rows, {keys.data(), m, kv_columns}, {values.data(), m, kv_columns});
    std::vector<float> out(queries.size(), NAN);
    const auto columns = shape_.heads * shape_.head_dim;
    on_.attention(
      *cache_, call_of(shape_), rows, {queries.data(), m, columns}, {out.data(), m, columns});
    return out;
  }

private:
  device& on_;
  const shape& shape_;
  std::unique_ptr<kv_cache> cache_;
};

std::vector<page_id> pages(std::initializer_list<unsigned> ids) {
  std::vector<page_id> made;
  for (auto id : ids)
    made.push_back(static_cast<page_id>(id));
  return made;
}

/// The whole sequence in steps of `chunk` rows.
std::vector<float> in_chunks(device& on, const shape& s, const sequence& q, std::size_t chunk) {
  state kept(on, s, 5);
  std::vector<float> out;
  for (std::size_t at = 0; at < q.length; at += chunk) {
    const auto some = kept.step({{&q, at, std::min(chunk, q.length - at), pages({3, 0, 4, 1})}});
    out.insert(out.end(), some.begin(), some.end());
  }
  return out;
}

} // namespace

BOOST_DATA_TEST_CASE(attention_equals_the_oracle, data::make(shapes), s) {
  auto on = make_cpu();
  const sequence q(s, 101, 31);
  BOOST_TEST(worst(in_chunks(*on, s, q, 101), expected_attention(s, q), 1.0) < 3e-6);
}

BOOST_DATA_TEST_CASE(attention_has_the_same_bits_for_any_chunk, data::make(shapes), s) {
  auto on = make_cpu();
  const sequence q(s, 101, 32);
  const auto whole = in_chunks(*on, s, q, 101);
  for (std::size_t chunk : {1, 7, 32, 40, 64})
    BOOST_TEST(same_bits(in_chunks(*on, s, q, chunk), whole), "chunks of " << chunk);
}

BOOST_DATA_TEST_CASE(G04_attention_has_the_same_bits_alone_and_among_others,
                     data::make(shapes),
                     s) {
  auto on = make_cpu();
  const sequence a(s, 70, 33), b(s, 9, 43), c(s, 101, 53);
  const auto alone = in_chunks(*on, s, a, 70);
  state kept(*on, s, 10);
  std::vector<float> found;
  // b prefills, then decodes beside chunks of a; c comes in one piece in the middle.
  std::size_t b_at = 0;
  for (std::size_t at = 0; at < 70; at += 10) {
    std::vector<state::part> parts{{&b, b_at, b_at == 0 ? 3u : 1u, pages({9})},
                                   {&a, at, 10, pages({7, 2, 5})}};
    if (at == 30)
      parts.push_back({&c, 0, 101, pages({0, 1, 3, 4})});
    b_at += b_at == 0 ? 3 : 1;
    const auto width = s.heads * s.head_dim;
    const auto out = kept.step(parts);
    const auto skipped = parts[0].count * width;
    found.insert(found.end(), out.begin() + skipped, out.begin() + skipped + 10 * width);
  }
  BOOST_TEST(same_bits(found, alone));
}

BOOST_DATA_TEST_CASE(G07_G11_attention_has_the_same_bits_on_any_threads_and_instruction_set,
                     data::make(shapes),
                     s) {
  const sequence q(s, 101, 34);
  std::vector<float> first;
  for (const auto& name : fused_instruction_sets()) {
    const with_instruction_set use(name);
    for (std::size_t threads : {1, 2, 3}) {
      auto on = make_cpu(threads);
      const auto found = in_chunks(*on, s, q, 50);
      if (first.empty())
        first = found;
      BOOST_TEST(same_bits(found, first), name << ", " << threads << " threads");
    }
  }
}

BOOST_AUTO_TEST_CASE(attention_is_close_without_fused_operations) {
  for (const auto& name : cpu::usable_instruction_sets()) {
    const with_instruction_set use(name);
    auto on = make_cpu();
    for (const auto& s : {shapes[2], shapes[3]}) {
      const sequence q(s, 70, 35);
      BOOST_TEST(worst(in_chunks(*on, s, q, 70), expected_attention(s, q), 1.0) < 3e-6, name);
    }
  }
}

BOOST_AUTO_TEST_CASE(attention_survives_large_scores) {
  // Scores of some hundreds: exp() of them alone would overflow.
  const shape& s = shapes[0];
  auto on = make_cpu();
  sequence q(s, 70, 36);
  for (auto& value : q.queries)
    value *= 200.0f;
  BOOST_TEST(worst(in_chunks(*on, s, q, 7), expected_attention(s, q), 1.0) < 2e-4);
}

BOOST_AUTO_TEST_CASE(a_poisoned_row_reaches_only_rows_that_see_it) {
  const shape& s = shapes[6]; // window of 33
  auto on = make_cpu();
  sequence q(s, 101, 37);
  const auto clean = in_chunks(*on, s, q, 101);
  const auto kv_width = s.kv_heads * s.head_dim;
  std::fill_n(q.values.begin() + 40 * kv_width, kv_width, NAN);
  const auto width = s.heads * s.head_dim;
  const auto found = in_chunks(*on, s, q, 101);
  for (std::size_t row = 0; row < 101; ++row)
    for (std::size_t i = row * width; i < (row + 1) * width; ++i)
      BOOST_REQUIRE(row >= 40 && row < 73 ? std::isnan(found[i]) : found[i] == clean[i]);
}

BOOST_AUTO_TEST_CASE(a_key_that_f16_cannot_hold_makes_its_row_not_finite_and_no_other) {
  shape s = shapes[0];
  s.held = dtype::f16;
  auto on = make_cpu();
  sequence q(s, 40, 38);
  q.keys[39 * s.kv_heads * s.head_dim] = 70000.0f;
  const auto found = in_chunks(*on, s, q, 40);
  const auto width = s.heads * s.head_dim;
  const auto finite = [](float value) { return std::isfinite(value); };
  BOOST_TEST(std::all_of(found.begin(), found.begin() + 39 * width, finite));
  BOOST_TEST(!std::all_of(found.begin() + 39 * width, found.end(), finite));
}

BOOST_AUTO_TEST_CASE(sixteen_bits_take_half_of_the_memory) {
  kv_shape kv{.layers = 3, .kv_heads = 2, .head_dim = 64, .pages = 5};
  const auto whole = kv_cache::page_bytes(kv);
  for (const auto held : {dtype::f16, dtype::bf16}) {
    kv.held = held;
    BOOST_TEST(kv_cache::page_bytes(kv) * 2 == whole);
  }
}

BOOST_AUTO_TEST_CASE(attention_state_is_bounded_address_space_and_refused_when_it_cannot_be) {
  auto on = make_cpu();
  // 64 GiB of pages that are never written cost no memory; 2^60 pages are refused.
  auto large = on->make_kv_cache({.layers = 32, .kv_heads = 8, .head_dim = 128, .pages = 8192});
  BOOST_TEST(static_cast<bool>(large));
  auto absurd = on->make_kv_cache(
    {.layers = 32, .kv_heads = 8, .head_dim = 128, .pages = std::size_t{1} << 60});
  BOOST_REQUIRE(!absurd);
  BOOST_TEST((absurd.error().code == errc::out_of_memory));
  auto too_much = on->make_kv_cache(
    {.layers = 32, .kv_heads = 8, .head_dim = 128, .pages = std::size_t{1} << 36});
  BOOST_REQUIRE(!too_much);
  BOOST_TEST((too_much.error().code == errc::out_of_memory));
}
