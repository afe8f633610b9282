#pragma once
// Which instruction sets the kernels are compiled for. Included before hwy/foreach_target.h by
// every file that is compiled once per instruction set; the best one of the machine is taken at run
// time.
//
// Left on x86: AVX-512 (named AVX3), AVX2 + FMA + F16C, SSE4, and plain scalar code; on ARM: NEON.
// A result has the same bits on all of those with a fused multiply-add (AVX-512, AVX2, NEON on
// 64-bit ARM). SSE4 and scalar code round the product and the sum apart: close, but not the same
// bits. Scalable vectors (SVE, RVV) cannot be held in arrays, which the register-blocked tiles
// need.

#define HWY_DISABLED_TARGETS                                                                       \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
