/// Sixteen floats as one value, for kernels that are written once and compiled per SIMD level
/// (files whose name ends with the level). A level's struct exists only where its instructions do;
/// kernels take it as a template parameter, so that no two levels share a symbol.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace holmes::kernels {

#if defined(__AVX512F__)
/// One zmm register.
struct Avx512Lanes {
  using Floats = __m512;
  /// Of the registers, how many a kernel may use to add up, in Floats.
  static constexpr int kAccumulators = 16;
  static Floats Zero() { return _mm512_setzero_ps(); }
  static Floats Set1(float x) { return _mm512_set1_ps(x); }
  static Floats Load(const float* p) { return _mm512_loadu_ps(p); }
  static void Store(float* p, Floats x) { _mm512_storeu_ps(p, x); }
  /// The first n < 16; the others are read as 0 and not written.
  static Floats LoadFirst(const float* p, std::int64_t n) {
    return _mm512_maskz_loadu_ps(FirstMask(n), p);
  }
  static void StoreFirst(float* p, std::int64_t n, Floats x) {
    _mm512_mask_storeu_ps(p, FirstMask(n), x);
  }
  static Floats Fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static Floats Add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats Sub(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
  static Floats Mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats Div(Floats a, Floats b) { return _mm512_div_ps(a, b); }
  /// b where either is NaN.
  static Floats Max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
  static Floats Round(Floats x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  /// x 2^n, n a whole number.
  static Floats Scale2(Floats x, Floats n) { return _mm512_scalef_ps(x, n); }
  /// x where `test` >= bound or is NaN, elsewhere `otherwise`.
  static Floats WhereNotBelow(Floats test, float bound, Floats x, Floats otherwise) {
    return _mm512_mask_mov_ps(
        x, _mm512_cmp_ps_mask(test, _mm512_set1_ps(bound), _CMP_LT_OQ), otherwise);
  }
  /// x in the lanes of `bits`, elsewhere `otherwise`.
  static Floats Where(std::uint16_t bits, Floats x, Floats otherwise) {
    return _mm512_mask_mov_ps(otherwise, bits, x);
  }
  static float ReduceAdd(Floats x) { return _mm512_reduce_add_ps(x); }
  static float ReduceMax(Floats x) { return _mm512_reduce_max_ps(x); }
  static float First(Floats x) { return _mm512_cvtss_f32(x); }

 private:
  static __mmask16 FirstMask(std::int64_t n) { return static_cast<__mmask16>((1U << n) - 1U); }
};
#endif

#if defined(__AVX2__) && !defined(__AVX512F__)
/// Two ymm registers.
struct Avx2Lanes {
  struct Floats {
    __m256 low;
    __m256 high;
  };
  static constexpr int kAccumulators = 6;
  static Floats Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Floats Set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Floats Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static void Store(float* p, Floats x) {
    _mm256_storeu_ps(p, x.low);
    _mm256_storeu_ps(p + 8, x.high);
  }
  static Floats LoadFirst(const float* p, std::int64_t n) {
    return {_mm256_maskload_ps(p, FirstMask(n)), _mm256_maskload_ps(p + 8, FirstMask(n - 8))};
  }
  static void StoreFirst(float* p, std::int64_t n, Floats x) {
    _mm256_maskstore_ps(p, FirstMask(n), x.low);
    _mm256_maskstore_ps(p + 8, FirstMask(n - 8), x.high);
  }
  static Floats Fma(Floats a, Floats b, Floats c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static Floats Add(Floats a, Floats b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  static Floats Sub(Floats a, Floats b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }
  static Floats Mul(Floats a, Floats b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  static Floats Div(Floats a, Floats b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }
  static Floats Max(Floats a, Floats b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }
  static Floats Round(Floats x) {
    constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(x.low, kMode), _mm256_round_ps(x.high, kMode)};
  }
  static Floats Scale2(Floats x, Floats n) {
    return {Scale2(x.low, n.low), Scale2(x.high, n.high)};
  }
  static Floats WhereNotBelow(Floats test, float bound, Floats x, Floats otherwise) {
    const __m256 limit = _mm256_set1_ps(bound);
    return {_mm256_blendv_ps(x.low, otherwise.low, _mm256_cmp_ps(test.low, limit, _CMP_LT_OQ)),
            _mm256_blendv_ps(x.high, otherwise.high, _mm256_cmp_ps(test.high, limit, _CMP_LT_OQ))};
  }
  static Floats Where(std::uint16_t bits, Floats x, Floats otherwise) {
    return {_mm256_blendv_ps(otherwise.low, x.low, LaneMask(bits & 0xFF)),
            _mm256_blendv_ps(otherwise.high, x.high, LaneMask(bits >> 8))};
  }
  static float ReduceAdd(Floats x) {
    const __m256 sum = _mm256_add_ps(x.low, x.high);
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }
  static float ReduceMax(Floats x) {
    const __m256 max = _mm256_max_ps(x.low, x.high);
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(max), _mm256_extractf128_ps(max, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
  }
  static float First(Floats x) { return _mm256_cvtss_f32(x.low); }

 private:
  /// All bits of the first n lanes; none for n <= 0, all for n >= 8.
  static __m256i FirstMask(std::int64_t n) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane);
  }
  static __m256 LaneMask(int bits) {
    const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_castsi256_ps(
        _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(bits), each), each));
  }
  /// In two factors, since 2^n alone may not be a float where x 2^n is.
  static __m256 Scale2(__m256 x, __m256 n) {
    const __m256i whole = _mm256_cvtps_epi32(n);
    const __m256i half = _mm256_srai_epi32(whole, 1);
    return _mm256_mul_ps(_mm256_mul_ps(x, Power2(half)), Power2(_mm256_sub_epi32(whole, half)));
  }
  static __m256 Power2(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
  }
};
#endif

/// exp(x) per lane; relative error below 2e-7. exp(-inf) = 0; results under the smallest normal are
/// flushed to 0; NaN stays NaN. x <= 88. Method: x = n ln 2 + r with |r| <= ln2 / 2 (two-part ln
/// 2), degree-6 Taylor polynomial in r, then scaled by 2^n (Cody and Waite 1980, chapter 6).
template <typename V>
typename V::Floats Exp(typename V::Floats x) {
  using Floats = typename V::Floats;
  const Floats n = V::Round(V::Mul(x, V::Set1(1.44269504088896341F)));
  Floats r = V::Fma(n, V::Set1(-0.693145751953125F), x);
  r = V::Fma(n, V::Set1(-1.42860682030941723e-6F), r);
  Floats p = V::Set1(1.0F / 720);
  p = V::Fma(p, r, V::Set1(1.0F / 120));
  p = V::Fma(p, r, V::Set1(1.0F / 24));
  p = V::Fma(p, r, V::Set1(1.0F / 6));
  p = V::Fma(p, r, V::Set1(0.5F));
  p = V::Fma(p, r, V::Set1(1.0F));
  p = V::Fma(p, r, V::Set1(1.0F));
  // -inf would give NaN through inf - inf above; everything under exp's normal range is 0.
  return V::WhereNotBelow(x, -87.3F, V::Scale2(p, n), V::Zero());
}

}  // namespace holmes::kernels
