// Rotary embedding: the pair (a, b) = (x[i], x[i + pairs]) of each head becomes
// (a cos - b sin, b cos + a sin); columns beyond the pairs pass through.

#include "compute/cpu/operations.hpp"

#include "compute/cpu/simd_targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/cpu/rope.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();

namespace troupe::compute::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

namespace {

template <class D>
HWY_INLINE void
turn_vector(D d, float* head, const float* cosines, const float* sines, std::size_t pairs) {
  const auto a = hn::LoadU(d, head);
  const auto b = hn::LoadU(d, head + pairs);
  const auto cosine = hn::LoadU(d, cosines);
  const auto sine = hn::LoadU(d, sines);
  hn::StoreU(hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), d, head);
  hn::StoreU(hn::MulAdd(a, sine, hn::Mul(b, cosine)), d, head + pairs);
}

} // namespace

void turn_head(float* head, const float* cosines, const float* sines, std::size_t pairs) {
  const hn::CappedTag<float, 16> d;
  const hn::CappedTag<float, 1> one; // The same arithmetic for what is left.
  constexpr std::size_t step = hn::MaxLanes(d);
  std::size_t i = 0;
  for (; i + step <= pairs; i += step)
    turn_vector(d, head + i, cosines + i, sines + i, pairs);
  for (; i < pairs; ++i)
    turn_vector(one, head + i, cosines + i, sines + i, pairs);
}

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::compute::cpu {

HWY_EXPORT(turn_head);

void rotate(execution& on, tensor x, std::size_t head_dim, const rope_angles& angles) {
  check(head_dim > 0 && x.columns % head_dim == 0, "rope: rows divide into heads");
  check(2 * angles.pairs() <= head_dim, "rope: the pairs lie within a head");
  check(angles.rows() == x.rows, "rope: x has the rows of the batch");
  on.run(x.rows * x.columns, [&](std::size_t thread, std::size_t threads) {
    const auto rows = split_part(x.rows, threads, thread);
    for (auto row = rows.begin; row < rows.end; ++row)
      for (std::size_t head = 0; head < x.columns; head += head_dim)
        HWY_DYNAMIC_DISPATCH(turn_head)
    (x.row(row) + head, angles.cosines(row), angles.sines(row), angles.pairs());
  });
}

} // namespace troupe::compute::cpu

#endif
