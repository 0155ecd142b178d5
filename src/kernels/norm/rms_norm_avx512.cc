#include <immintrin.h>

#include <cmath>

#include "kernels/norm/rms_norm_impl.h"

namespace holmes::kernels::internal {

void RmsNormRowAvx512(const float* x, std::int64_t n, const float* weight, float eps, float* y) {
  const std::int64_t whole = n / 16 * 16;
  const __mmask16 tail = static_cast<__mmask16>((1U << (n - whole)) - 1U);
  __m512 sum = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < whole; i += 16) {
    const __m512 v = _mm512_loadu_ps(x + i);
    sum = _mm512_fmadd_ps(v, v, sum);
  }
  if (tail != 0) {
    const __m512 v = _mm512_maskz_loadu_ps(tail, x + whole);
    sum = _mm512_fmadd_ps(v, v, sum);
  }
  const float mean = _mm512_reduce_add_ps(sum) / static_cast<float>(n);
  const __m512 scale = _mm512_set1_ps(1.0F / std::sqrt(mean + eps));
  for (std::int64_t i = 0; i < whole; i += 16) {
    const __m512 v = _mm512_mul_ps(_mm512_loadu_ps(x + i), scale);
    _mm512_storeu_ps(y + i, _mm512_mul_ps(v, _mm512_loadu_ps(weight + i)));
  }
  if (tail != 0) {
    const __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(tail, x + whole), scale);
    const __m512 w = _mm512_maskz_loadu_ps(tail, weight + whole);
    _mm512_mask_storeu_ps(y + whole, tail, _mm512_mul_ps(v, w));
  }
}

}  // namespace holmes::kernels::internal
