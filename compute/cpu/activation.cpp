// Element by element: silu(gate) * up, sums, and the search for values that are not finite.

#include "compute/cpu/operations.hpp"

#include <algorithm>
#include <bit>

#include "compute/cpu/simd_targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/cpu/activation.cpp"
#include <hwy/foreach_target.h>

#include "compute/cpu/exponential-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace troupe::compute::cpu::HWY_NAMESPACE {

namespace {

using wide = hn::CappedTag<float, 16>;

/// f(vector of a, vector of b) -> out over `count` elements; the last vector is filled up with
/// zeros.
template <class F>
HWY_INLINE void
map_pairs(const float* a, const float* b, float* out, std::size_t count, const F& f) {
  const wide d;
  constexpr std::size_t step = hn::MaxLanes(d);
  std::size_t i = 0;
  for (; i + step <= count; i += step)
    hn::StoreU(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  if (i == count)
    return;
  HWY_ALIGN float last[3][step] = {};
  std::copy_n(a + i, count - i, last[0]);
  std::copy_n(b + i, count - i, last[1]);
  hn::Store(f(d, hn::Load(d, last[0]), hn::Load(d, last[1])), d, last[2]);
  std::copy_n(last[2], count - i, out + i);
}

struct gated {
  template <class V>
  HWY_INLINE V operator()(wide d, V gate, V up) const {
    const auto decay = exponential(d, hn::Neg(gate));
    return hn::Mul(hn::Div(gate, hn::Add(hn::Set(d, 1.0f), decay)), up);
  }
};

struct summed {
  template <class V>
  HWY_INLINE V operator()(wide, V x, V sum) const {
    return hn::Add(sum, x);
  }
};

} // namespace

void gate_row(const float* gate, const float* up, float* out, std::size_t count) {
  map_pairs(gate, up, out, count, gated());
}

void add_row(const float* x, float* out, std::size_t count) {
  map_pairs(x, out, out, count, summed());
}

/// Not finite: the exponent has all bits set.
bool all_finite(const float* x, std::size_t count) {
  const hn::CappedTag<std::uint32_t, 16> d;
  constexpr std::size_t step = hn::MaxLanes(d);
  constexpr std::uint32_t exponent = 0x7f800000u;
  const hn::Rebind<float, decltype(d)> as_float;
  auto found = hn::Zero(d); // All bits set in lanes that met one.
  std::size_t i = 0;
  for (; i + step <= count; i += step) {
    const auto word = hn::BitCast(d, hn::LoadU(as_float, x + i));
    const auto masked = hn::And(word, hn::Set(d, exponent));
    found = hn::Or(found, hn::VecFromMask(d, hn::Eq(masked, hn::Set(d, exponent))));
  }
  bool finite = hn::AllTrue(d, hn::Eq(found, hn::Zero(d)));
  for (; i < count; ++i)
    finite &= (std::bit_cast<std::uint32_t>(x[i]) & exponent) != exponent;
  return finite;
}

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::compute::cpu {

HWY_EXPORT(gate_row);
HWY_EXPORT(add_row);
HWY_EXPORT(all_finite);

namespace {

/// f(row) for all rows, over the team where there are many elements.
template <class F>
void for_rows(execution& on, std::size_t rows, std::size_t columns, const F& f) {
  on.run(rows * columns, [&](std::size_t thread, std::size_t threads) {
    const auto mine = split_part(rows, threads, thread);
    for (auto row = mine.begin; row < mine.end; ++row)
      f(row);
  });
}

bool same_shape(tensor a, tensor b) {
  return a.rows == b.rows && a.columns == b.columns;
}

} // namespace

void silu_mul(execution& on, tensor gate, tensor up, tensor out) {
  check(same_shape(gate, up) && same_shape(gate, out), "silu_mul: all have one shape");
  for_rows(on, gate.rows, gate.columns, [&](std::size_t row) {
    HWY_DYNAMIC_DISPATCH(gate_row)(gate.row(row), up.row(row), out.row(row), gate.columns);
  });
}

void add(execution& on, tensor x, tensor out) {
  check(same_shape(x, out), "add: both have one shape");
  for_rows(on, x.rows, x.columns, [&](std::size_t row) {
    HWY_DYNAMIC_DISPATCH(add_row)(x.row(row), out.row(row), x.columns);
  });
}

void find_finite(execution& on, tensor x, std::span<bool> finite) {
  check(finite.size() == x.rows, "find_finite: an answer for each row");
  for_rows(on, x.rows, x.columns, [&](std::size_t row) {
    finite[row] = HWY_DYNAMIC_DISPATCH(all_finite)(x.row(row), x.columns);
  });
}

} // namespace troupe::compute::cpu

#endif
