// Root mean square normalisation. The squares are summed in 16 partial sums, column c in sum c mod
// 16, which are then added pairwise: the same order whatever the vector's width.

#include "compute/cpu/operations.hpp"

#include <algorithm>
#include <cmath>

#include "compute/cpu/simd_targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/cpu/norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();

namespace troupe::compute::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

namespace {

constexpr std::size_t partial_sums = 16;

float sum_of_squares(const float* HWY_RESTRICT x, std::size_t count) {
  const hn::CappedTag<float, partial_sums> d;
  constexpr std::size_t vectors = partial_sums / hn::MaxLanes(d);
  hn::Vec<decltype(d)> sum[vectors];
  for (auto& part : sum)
    part = hn::Zero(d);
  const auto whole = count / partial_sums * partial_sums;
  for (std::size_t i = 0; i < whole; i += partial_sums)
    for (std::size_t v = 0; v < vectors; ++v) {
      const auto value = hn::LoadU(d, x + i + v * hn::MaxLanes(d));
      sum[v] = hn::MulAdd(value, value, sum[v]);
    }
  HWY_ALIGN float last[partial_sums] = {}; // The rest, filled up with zeros.
  std::copy_n(x + whole, count - whole, last);
  HWY_ALIGN float parts[partial_sums];
  for (std::size_t v = 0; v < vectors; ++v) {
    const auto value = hn::Load(d, last + v * hn::MaxLanes(d));
    hn::Store(hn::MulAdd(value, value, sum[v]), d, parts + v * hn::MaxLanes(d));
  }
  for (std::size_t half = partial_sums / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i)
      parts[i] += parts[i + half];
  return parts[0];
}

} // namespace

/// out = x / sqrt(mean of squares + eps) * weight over `count` columns; out may be x.
void normalise(const float* x, const float* weight, std::size_t count, float eps, float* out) {
  const float mean = sum_of_squares(x, count) / static_cast<float>(count);
  const float factor = 1.0f / std::sqrt(mean + eps);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = x[i] * factor * weight[i];
}

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::compute::cpu {

HWY_EXPORT(normalise);

void rms_norm(execution& on,
              tensor x,
              std::size_t width,
              std::span<const float> weight,
              float eps,
              tensor out) {
  check(width > 0 && x.columns % width == 0, "norm: rows divide into groups of the width");
  check(weight.size() == width, "norm: a weight for each column of a group");
  check(out.rows == x.rows && out.columns == x.columns, "norm: out has the shape of x");
  on.run(x.rows * x.columns, [&](std::size_t thread, std::size_t threads) {
    const auto rows = split_part(x.rows, threads, thread);
    for (auto row = rows.begin; row < rows.end; ++row)
      for (std::size_t begin = 0; begin < x.columns; begin += width)
        HWY_DYNAMIC_DISPATCH(normalise)
    (x.row(row) + begin, weight.data(), width, eps, out.row(row) + begin);
  });
}

} // namespace troupe::compute::cpu

#endif
