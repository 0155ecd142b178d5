#include <immintrin.h>

#include <limits>

#include "kernels/linear/quantized_rows.h"

namespace holmes::kernels::internal {
namespace {

inline __m512i Magnitude(__m512 x) {
  return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
}

/// Writes the two bytes of 16 integers and returns their sum.
inline std::int32_t Split(__m512i value, std::int8_t* high, std::int8_t* low) {
  const __m512i upper = _mm512_srai_epi32(_mm512_add_epi32(value, _mm512_set1_epi32(128)), 8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(high), _mm512_cvtepi32_epi8(upper));
  // The low byte of the number itself is value - 256 high in two's complement.
  _mm_storeu_si128(reinterpret_cast<__m128i*>(low), _mm512_cvtepi32_epi8(value));
  return _mm512_reduce_add_epi32(value);
}

}  // namespace

void QuantizeRowAvx512(const float* x,
                       std::int64_t k,
                       std::int8_t* values,
                       QuantizedRows::Block* blocks) {
  constexpr std::int64_t kInputs = QuantizedRows::kBlockInputs;
  for (std::int64_t begin = 0; begin < k; begin += kInputs, values += 2 * kInputs, ++blocks) {
    const std::int64_t left = k - begin;
    const std::uint32_t mask = left >= kInputs ? 0xFFFFFFFFU : (std::uint32_t{1} << left) - 1U;
    const __m512 a = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask & 0xFFFFU), x + begin);
    const __m512 b = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), x + begin + 16);
    const std::uint32_t max_bits =
        _mm512_reduce_max_epu32(_mm512_max_epu32(Magnitude(a), Magnitude(b)));
    const float max =
        _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int>(max_bits))));
    if (max_bits >= 0x7F800000U || max < 1e-30F) [[unlikely]] {
      _mm512_storeu_si512(values, _mm512_setzero_si512());
      *blocks = {};
      if (max_bits >= 0x7F800000U)
        blocks->scale = blocks->scaled_sum = std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    const __m512 inverse = _mm512_set1_ps(QuantizedRows::kMaxInteger / max);
    blocks->sum[0] = Split(_mm512_cvtps_epi32(_mm512_mul_ps(a, inverse)), values, values + kInputs);
    blocks->sum[1] =
        Split(_mm512_cvtps_epi32(_mm512_mul_ps(b, inverse)), values + 16, values + kInputs + 16);
    blocks->scale = max / QuantizedRows::kMaxInteger;
    blocks->scaled_sum = blocks->scale * static_cast<float>(blocks->sum[0] + blocks->sum[1]);
  }
}

}  // namespace holmes::kernels::internal
