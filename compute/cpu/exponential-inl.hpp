// exp() in vectors: the same operations in each lane for every width. Included once per instruction
// set (Highway's foreach_target), hence no #pragma once.

#if defined(TROUPE_COMPUTE_CPU_EXPONENTIAL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_COMPUTE_CPU_EXPONENTIAL_INL
#undef TROUPE_COMPUTE_CPU_EXPONENTIAL_INL
#else
#define TROUPE_COMPUTE_CPU_EXPONENTIAL_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();

namespace troupe::compute::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// exp(x) to about 1 ulp; 0 where the result would be subnormal, infinity above 88.72, NaN for NaN.
/// After Cephes' expf: x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts, a polynomial in r.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exponential(D d, V x) {
  const hn::RebindToSigned<D> integer;
  const auto lowest = hn::Set(d, -87.33654f);
  // Max and Min give their second operand if one is NaN, so a NaN passes through.
  const auto bounded = hn::Min(hn::Set(d, 89.0f), hn::Max(lowest, x));
  const auto n = hn::NearestInt(hn::Mul(bounded, hn::Set(d, 1.44269504088896341f)));
  const auto whole = hn::ConvertTo(d, n);
  auto r = hn::NegMulAdd(whole, hn::Set(d, 0.693359375f), bounded);
  r = hn::NegMulAdd(whole, hn::Set(d, -2.12194440e-4f), r);
  auto p = hn::Set(d, 1.9875691500e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  p = hn::Add(hn::MulAdd(hn::Mul(r, r), p, r), hn::Set(d, 1.0f));
  // 2^n in two factors: n reaches 128, whose exponent does not fit one float.
  const auto half = hn::ShiftRight<1>(n);
  const auto power = [&](auto exponent) HWY_ATTR {
    return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(exponent, hn::Set(integer, 127))));
  };
  const auto scaled = hn::Mul(hn::Mul(p, power(half)), power(hn::Sub(n, half)));
  return hn::IfThenElse(hn::Lt(x, lowest), hn::Zero(d), scaled);
}

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
