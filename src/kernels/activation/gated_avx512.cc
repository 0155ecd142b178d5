#include <immintrin.h>

#include "kernels/activation/gated.h"
#include "kernels/simd/exp_avx512.h"

namespace holmes::kernels::internal {
namespace {

inline __m512 SiluMul16(__m512 gate, __m512 up) {
  // Clamped so that exp stays finite: silu(-88) is 0 to float precision anyway.
  const __m512 floor = _mm512_set1_ps(-87.0F);
  const __mmask16 low = _mm512_cmp_ps_mask(gate, floor, _CMP_LT_OQ);
  const __m512 x = _mm512_mask_mov_ps(gate, low, floor);
  const __m512 e = Exp16(_mm512_sub_ps(_mm512_setzero_ps(), x));
  const __m512 silu = _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0F), e));
  return _mm512_mul_ps(silu, up);
}

}  // namespace

void SiluMulAvx512(float* gate, const float* up, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    _mm512_storeu_ps(gate + i, SiluMul16(_mm512_loadu_ps(gate + i), _mm512_loadu_ps(up + i)));
  }
  if (i < n) {
    const __mmask16 mask = static_cast<__mmask16>((1U << (n - i)) - 1U);
    const __m512 y =
        SiluMul16(_mm512_maskz_loadu_ps(mask, gate + i), _mm512_maskz_loadu_ps(mask, up + i));
    _mm512_mask_storeu_ps(gate + i, mask, y);
  }
}

}  // namespace holmes::kernels::internal
