/// exp of 16 floats. Include only from files compiled for AVX-512.
#pragma once

#include <immintrin.h>

namespace holmes::kernels {

/// exp(x) per lane; relative error below 2e-7. exp(-inf) = 0; results under the smallest normal are
/// flushed to 0; NaN stays NaN. Method: x = n ln 2 + r with |r| <= ln2 / 2 (two-part ln 2),
/// degree-6 Taylor polynomial in r, then scaled by 2^n (Cody and Waite 1980, chapter 6).
inline __m512 Exp16(__m512 x) {
  const __m512 log2e = _mm512_set1_ps(1.44269504088896341F);
  const __m512 n =
      _mm512_roundscale_ps(_mm512_mul_ps(x, log2e), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693145751953125F), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(1.42860682030941723e-6F), r);
  __m512 p = _mm512_set1_ps(1.0F / 720);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 120));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 24));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 6));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
  const __m512 y = _mm512_scalef_ps(p, n);
  // -inf would give NaN through inf - inf above; everything under exp's normal range is 0.
  const __mmask16 tiny = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-87.3F), _CMP_LT_OQ);
  return _mm512_mask_mov_ps(y, tiny, _mm512_setzero_ps());
}

}  // namespace holmes::kernels
