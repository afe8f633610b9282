// out = x * W^T for weights of 8 and 4 bits, with integer dot products. Each row of x is quantised
// as well, 32 columns at a time: 127 steps to the largest of them. For one output element, block by
// block in ascending order:
//
//   dot = sum of weight code * x code                          exact, 32 bits
//   sum = fma(dot, weight scale * x scale, sum)
//   sum = fma(weight minimum, x scale * sum of x codes, sum)   4 bits only
//
// Integer sums have no order, so the bits depend on neither rows, threads nor instruction set.
//
// An 8-bit code is 128 too large, which makes it unsigned as the instruction wants it: sums of such
// a block start at -128 * (sum of the x codes). Nothing can overflow: 32 * 255 * 127 is 1,036,320.

#include "compute/cpu/blocks.hpp"
#include "compute/cpu/instruction_sets.hpp"
#include "compute/cpu/matmul_job.hpp"
#include "compute/cpu/operations.hpp"

#include <algorithm>
#include <limits>

#include "compute/cpu/simd_targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/cpu/matmul_blocks.cpp"
#include <hwy/foreach_target.h>

#include "compute/cpu/finish-inl.hpp"
#include "compute/cpu/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace troupe::compute::cpu::HWY_NAMESPACE {

using words = hn::RebindToSigned<lanes>;
using word_vector = hn::Vec<words>;

/// Words of 4 bytes that a row of x takes for one block: its codes, scale, and what corrects sums.
inline constexpr std::size_t x_words = block_quads + 2;
/// Blocks of a panel that stay in the first-level cache while the tiles of rows pass.
inline constexpr std::size_t chunk_blocks = 16;

/// Whether each lane's four products are added by one instruction.
enum class dot { in_one, in_steps };

/// sum += the four products in each lane of unsigned bytes of `a` and signed ones of `b`.
template <dot Kind>
HWY_INLINE word_vector add_products(words d, word_vector sum, word_vector a, word_vector b) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (Kind == dot::in_one) {
    // By name: this set of Highway's is compiled without the extension, which is looked for when
    // the program runs.
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  }
#endif
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  // Pairs of 16-bit products, which have room for 255 * 127 * 2; 8-bit pairs would saturate.
  const hn::Repartition<std::int16_t, words> half;
  const hn::Repartition<std::uint16_t, words> unsigned_half;
  const auto low = hn::BitCast(half, hn::And(a, hn::Set(d, 0x00ff00ff)));
  const auto high = hn::BitCast(half, hn::ShiftRight<8>(hn::BitCast(unsigned_half, a)));
  const auto signed_bytes = hn::BitCast(half, b);
  const auto even = hn::ShiftRight<8>(hn::ShiftLeft<8>(signed_bytes));
  const auto odd = hn::ShiftRight<8>(signed_bytes);
  auto unused = hn::Zero(d);
  sum = hn::ReorderWidenMulAccumulate(d, low, even, sum, unused);
  return hn::ReorderWidenMulAccumulate(d, high, odd, sum, unused);
#else
  const auto byte = hn::Set(d, 0xff);
  const auto product = [&](word_vector codes, word_vector signed_codes) {
    return hn::Mul(hn::And(codes, byte), hn::ShiftRight<24>(signed_codes));
  };
  sum = hn::Add(sum, product(a, hn::ShiftLeft<24>(b)));
  sum = hn::Add(sum, product(hn::ShiftRight<8>(a), hn::ShiftLeft<16>(b)));
  sum = hn::Add(sum, product(hn::ShiftRight<16>(a), hn::ShiftLeft<8>(b)));
  return hn::Add(sum, product(hn::ShiftRight<24>(a), b));
#endif
}

/// Blocks [first, first + count) of a panel, from the lanes on that a tile has.
struct block_walk {
  const std::byte* blocks; ///< The first one.
  std::size_t lane;
  std::size_t count;
};

/// Codes of quad `quad` of a block for a vector of rows.
template <dtype Held>
HWY_INLINE word_vector
load_codes(words d, const std::byte* block, std::size_t quad, std::size_t lane) {
  constexpr auto places = Held == dtype::int4 ? block_quads / 2 : block_quads;
  const auto* at = block + ((quad % places) * block_rows + lane) * 4;
  const auto codes = hn::LoadU(d, reinterpret_cast<const std::int32_t*>(at));
  if constexpr (Held == dtype::int8)
    return codes;
  const auto low_half = hn::Set(d, 0x0f0f0f0f);
  if (quad < places)
    return hn::And(codes, low_half);
  return hn::And(hn::ShiftRight<4>(codes), low_half);
}

/// One tile: all blocks of a walk for Rows rows of x. x: [block][x_words][Rows], `x_step` words
/// from one block to the next. Sums start at zero, or at what `sums` holds if `resume`.
template <std::size_t Rows, dtype Held, dot Kind, class Fetch>
HWY_NOINLINE void block_tile(block_walk w,
                             const float* x,
                             std::size_t x_step,
                             regular<float, panel_width> sums,
                             bool resume,
                             Fetch fetch) {
  const lanes d;
  const words whole;
  constexpr auto vectors = tile_vectors;
  vector sum[Rows][vectors];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (std::size_t v = 0; v < vectors; ++v)
      sum[r][v] = resume ? hn::LoadU(d, sums.row(r) + v * lane_count) : hn::Zero(d);
  for (std::size_t i = 0; i < w.count; ++i, x += x_step) {
    const auto* block = w.blocks + i * panel_block_bytes(Held);
    const auto* codes = reinterpret_cast<const std::int32_t*>(x);
    const auto* scale = x + block_quads * Rows;
    const auto* correction = scale + Rows;
    word_vector products[Rows][vectors];
#pragma GCC unroll 16
    for (std::size_t r = 0; r < Rows; ++r) {
      const auto start =
        hn::Set(whole, Held == dtype::int8 ? std::bit_cast<std::int32_t>(correction[r]) : 0);
#pragma GCC unroll 4
      for (std::size_t v = 0; v < vectors; ++v)
        products[r][v] = start;
    }
    fetch.template beside<panel_block_bytes(Held)>(block, 0);
#pragma GCC unroll 8
    for (std::size_t quad = 0; quad < block_quads; ++quad) {
      word_vector weights[vectors];
#pragma GCC unroll 4
      for (std::size_t v = 0; v < vectors; ++v)
        weights[v] = load_codes<Held>(whole, block, quad, w.lane + v * lane_count);
#pragma GCC unroll 16
      for (std::size_t r = 0; r < Rows; ++r) {
        const auto four = hn::Set(whole, codes[quad * Rows + r]);
#pragma GCC unroll 4
        for (std::size_t v = 0; v < vectors; ++v)
          products[r][v] = add_products<Kind>(whole, products[r][v], weights[v], four);
      }
    }
    const auto* scales = reinterpret_cast<const bf16*>(block + code_bytes(Held)) + w.lane;
#pragma GCC unroll 4
    for (std::size_t v = 0; v < vectors; ++v) {
      const auto weight_scale = load_weights(d, scales + v * lane_count);
      const auto minimum =
        Held == dtype::int4 ? load_weights(d, scales + block_rows + v * lane_count) : hn::Zero(d);
#pragma GCC unroll 16
      for (std::size_t r = 0; r < Rows; ++r) {
        sum[r][v] = hn::MulAdd(
          hn::ConvertTo(d, products[r][v]), hn::Mul(weight_scale, hn::Set(d, scale[r])), sum[r][v]);
        if constexpr (Held == dtype::int4)
          sum[r][v] = hn::MulAdd(minimum, hn::Set(d, correction[r]), sum[r][v]);
      }
    }
  }
#pragma GCC unroll 16
  for (std::size_t r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (std::size_t v = 0; v < vectors; ++v)
      hn::StoreU(sum[r][v], d, sums.row(r) + v * lane_count);
}

template <dtype Held, dot Kind, class Fetch>
constexpr auto make_block_tiles() {
  using function =
    void (*)(block_walk, const float*, std::size_t, regular<float, panel_width>, bool, Fetch);
  return []<std::size_t... Row>(std::index_sequence<Row...>) {
    return std::array<function, tile_rows>{&block_tile<Row + 1, Held, Kind, Fetch>...};
  }
  (std::make_index_sequence<tile_rows>());
}

/// Quantises `count` columns (a block) of one row. Word i of the row lies at out[i * step].
template <dtype Held>
void quantise_x(const float* x, std::size_t count, float* out, std::size_t step) {
  constexpr std::uint32_t magnitude = 0x7fffffffu;
  constexpr std::uint32_t not_finite = 0x7f800000u;
  // What is smaller cannot be inverted, and adds nothing that a sum would show.
  constexpr float smallest = 1e-30f;
  std::uint32_t largest_bits = 0; // Magnitudes of floats are ordered as their bits are.
  for (std::size_t i = 0; i < count; ++i)
    largest_bits = std::max(largest_bits, std::bit_cast<std::uint32_t>(x[i]) & magnitude);
  const float largest = std::bit_cast<float>(largest_bits);
  const bool counts = largest_bits < not_finite && largest >= smallest;
  const float inverse = counts ? 127.0f / largest : 0.0f;
  std::int8_t codes[quantised_block] = {};
  std::int32_t total = 0;
  for (std::size_t i = 0; i < count && counts; ++i) {
    constexpr float rounds = 0x1.8p23f; // Leaves no room for a fraction: half to even.
    const float code = (x[i] * inverse + rounds) - rounds;
    codes[i] = static_cast<std::int8_t>(code);
    total += codes[i];
  }
  for (std::size_t quad = 0; quad < block_quads; ++quad)
    std::memcpy(&out[quad * step], codes + quad * 4, 4);
  // A row that is not finite stays so, and is found at the end.
  const float scale = largest_bits >= not_finite ? std::numeric_limits<float>::quiet_NaN()
                      : counts                   ? largest / 127.0f
                                                 : 0.0f;
  out[block_quads * step] = scale;
  out[(block_quads + 1) * step] =
    Held == dtype::int8 ? std::bit_cast<float>(-128 * total) : scale * static_cast<float>(total);
}

/// Where a tile's rows of a block of x lie: [block][tile][x_words][row].
float* tile_of_codes(const matmul_job& job, std::size_t block, std::size_t row) {
  return job.tiles + (block * job.x.rows + row) * x_words;
}

template <dtype Held>
void quantise_share(const matmul_job& job, std::size_t thread, std::size_t threads) {
  const row_tiles cut{job.x.rows};
  const auto blocks = (job.columns() + quantised_block - 1) / quantised_block;
  const auto mine = split_part(blocks * cut.count(), threads, thread);
  for (auto i = mine.begin; i < mine.end; ++i) {
    const auto block = i / cut.count();
    const auto begin = block * quantised_block;
    const auto first = cut.first(i % cut.count());
    const auto height = cut.height(i % cut.count());
    float* to = tile_of_codes(job, block, first);
    for (std::size_t r = 0; r < height; ++r)
      quantise_x<Held>(job.x.row(first + r) + begin,
                       std::min(quantised_block, job.columns() - begin),
                       to + r,
                       height);
  }
}

template <dtype Held, dot Kind>
void multiply_share(const matmul_job& job, std::size_t thread) {
  static constexpr auto streamed = make_block_tiles<Held, Kind, fetch_stream>();
  static constexpr auto plain = make_block_tiles<Held, Kind, no_fetch>();
  const row_tiles cut{job.x.rows};
  float* sums = job.on->each[thread].floats(job.x.rows * panel_width);
  const auto blocks = (job.columns() + quantised_block - 1) / quantised_block;
  const bool passes_once = cut.count() == 1 && tile_lanes == panel_width;
  const auto chunk = passes_once ? blocks : chunk_blocks;
  for (auto next = job.on->work.take(thread, 1); !next.empty();
       next = job.on->work.take(thread, 1)) {
    for (std::size_t begin = 0; begin < blocks; begin += chunk) {
      const auto* from = job.weights->panel(next.begin) + begin * panel_block_bytes(Held);
      const auto count = std::min(chunk, blocks - begin);
      for (std::size_t t = 0; t < cut.count(); ++t)
        for (std::size_t lane = 0; lane < panel_width; lane += tile_lanes) {
          const block_walk walk{from, lane, count};
          const float* x = tile_of_codes(job, begin, cut.first(t));
          const auto step = job.x.rows * x_words;
          const regular<float, panel_width> out{sums + cut.first(t) * panel_width + lane};
          const auto tile = cut.height(t) - 1;
          if (t == 0 && lane == 0)
            streamed[tile](walk, x, step, out, begin > 0, {});
          else
            plain[tile](walk, x, step, out, begin > 0, {});
        }
    }
    finish_panels(job, next, sums);
    job.on->beat();
  }
}

template <dtype Held>
void share_of(const matmul_job& job, std::size_t thread, std::size_t threads) {
  quantise_share<Held>(job, thread, threads);
  job.on->barrier(threads);
#if HWY_TARGET == HWY_AVX3
  if (has_dot_products())
    return multiply_share<Held, dot::in_one>(job, thread);
#endif
  multiply_share<Held, dot::in_steps>(job, thread);
}

/// One thread's share of a product.
void matmul_blocks_share(const matmul_job& job, std::size_t thread, std::size_t threads) {
  if (job.weights->held() == dtype::int8)
    share_of<dtype::int8>(job, thread, threads);
  else
    share_of<dtype::int4>(job, thread, threads);
}

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::compute::cpu {

HWY_EXPORT(matmul_blocks_share);

void matmul_blocks(matmul_job& job) {
  const auto blocks = (job.columns() + quantised_block - 1) / quantised_block;
  job.tiles = job.on->shared.floats(job.x.rows * blocks * (block_quads + 2));
  job.on->work.deal(job.weights->panels(), job.on->threads_for(job.elements()));
  job.on->run(job.elements(), [&](std::size_t thread, std::size_t threads) {
    HWY_DYNAMIC_DISPATCH(matmul_blocks_share)(job, thread, threads);
  });
}

} // namespace troupe::compute::cpu

#endif
