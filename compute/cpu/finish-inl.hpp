// What becomes of the sums of a product. Included once per instruction set (Highway's
// foreach_target), hence no #pragma once.

#if defined(TROUPE_COMPUTE_CPU_FINISH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_COMPUTE_CPU_FINISH_INL
#undef TROUPE_COMPUTE_CPU_FINISH_INL
#else
#define TROUPE_COMPUTE_CPU_FINISH_INL
#endif

#include "compute/cpu/matmul_job.hpp"
#include "compute/cpu/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace troupe::compute::cpu::HWY_NAMESPACE {

/// out = sum (+ bias) (+ added) over some lanes; what is not there is null.
template <class D>
HWY_INLINE void
finish_lanes(D d, const float* sum, const float* bias, const float* added, float* out) {
  auto value = hn::LoadU(d, sum);
  if (bias != nullptr)
    value = hn::Add(value, hn::LoadU(d, bias));
  if (added != nullptr)
    value = hn::Add(hn::LoadU(d, added), value);
  hn::StoreU(value, d, out);
}

/// One row of one panel; sum: [panel_width].
HWY_INLINE void
finish_row(const matmul_job& job, std::size_t panel, std::size_t row, const float* sum) {
  const auto first = panel * panel_width;
  const auto count = std::min(panel_width, job.weights->rows() - first);
  const auto at = [](const float* values, std::size_t i) { return values ? values + i : nullptr; };
  const float* bias = job.bias.empty() ? nullptr : job.bias.data() + first;
  const float* added = job.added.data ? job.added.row(row) + first : nullptr;
  float* out = job.out.row(row) + first;
  std::size_t i = 0;
  for (; i + lane_count <= count; i += lane_count)
    finish_lanes(lanes(), sum + i, at(bias, i), at(added, i), out + i);
  for (; i < count; ++i)
    finish_lanes(hn::CappedTag<float, 1>(), sum + i, at(bias, i), at(added, i), out + i);
}

/// sums: [panel][rows][panel_width] -> out, in the order in which out lies in memory.
HWY_INLINE void finish_panels(const matmul_job& job, range panels, const float* sums) {
  for (std::size_t row = 0; row < job.x.rows; ++row)
    for (auto panel = panels.begin; panel < panels.end; ++panel)
      finish_row(job, panel, row, sums + ((panel - panels.begin) * job.x.rows + row) * panel_width);
}

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
