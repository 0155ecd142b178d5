#include <immintrin.h>

#include "fma_probe.h"

namespace holmes::kernels {

double RunFmaProbe(int iterations) {
  constexpr int kChains = 16;  // latency 4 on two ports needs 8
  __m512 acc[kChains];
  for (__m512& a : acc) a = _mm512_set1_ps(1.0F);
  const __m512 factor = _mm512_set1_ps(0.5F);
  for (int i = 0; i < iterations; ++i) {
    for (__m512& a : acc) {
      a = _mm512_fmadd_ps(a, factor, factor);
      asm volatile("" : "+v"(a));  // keeps the loop from being folded
    }
  }
  return 16.0 * kChains * iterations;
}

}  // namespace holmes::kernels
