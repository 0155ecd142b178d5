#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "kernels/linear/quantized_rows.h"

namespace holmes::kernels::internal {
namespace {

std::int32_t ReduceAdd(__m256i x) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xB1)));
}

std::uint32_t ReduceMax(__m256i x) {
  __m128i m = _mm_max_epu32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4E));
  return static_cast<std::uint32_t>(
      _mm_cvtsi128_si32(_mm_max_epu32(m, _mm_shuffle_epi32(m, 0xB1))));
}

}  // namespace

void QuantizeRowAvx2(const float* x,
                     std::int64_t k,
                     std::int8_t* values,
                     QuantizedRows::Block* blocks) {
  constexpr std::int64_t kInputs = QuantizedRows::kBlockInputs;
  const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
  // Of each four 16-bit integers: 0 2 1 3.
  const __m256i order = _mm256_setr_epi8(0,
                                         1,
                                         4,
                                         5,
                                         2,
                                         3,
                                         6,
                                         7,
                                         8,
                                         9,
                                         12,
                                         13,
                                         10,
                                         11,
                                         14,
                                         15,
                                         0,
                                         1,
                                         4,
                                         5,
                                         2,
                                         3,
                                         6,
                                         7,
                                         8,
                                         9,
                                         12,
                                         13,
                                         10,
                                         11,
                                         14,
                                         15);
  for (std::int64_t begin = 0; begin < k; begin += kInputs, values += 2 * kInputs, ++blocks) {
    const float* from = x + begin;
    float padded[kInputs];
    if (k - begin < kInputs) [[unlikely]] {
      std::fill_n(padded, kInputs, 0.0F);
      std::copy_n(from, k - begin, padded);
      from = padded;
    }
    __m256 part[4];
    __m256i max_part = _mm256_setzero_si256();
    for (int i = 0; i < 4; ++i) {
      part[i] = _mm256_loadu_ps(from + 8 * i);
      max_part =
          _mm256_max_epu32(max_part, _mm256_and_si256(_mm256_castps_si256(part[i]), magnitude));
    }
    const std::uint32_t max_bits = ReduceMax(max_part);
    const float max =
        _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int>(max_bits))));
    auto* const out = reinterpret_cast<__m256i*>(values);
    if (max_bits >= 0x7F800000U || max < 1e-30F) [[unlikely]] {
      _mm256_storeu_si256(out, _mm256_setzero_si256());
      _mm256_storeu_si256(out + 1, _mm256_setzero_si256());
      *blocks = {};
      if (max_bits >= 0x7F800000U)
        blocks->scale = blocks->scaled_sum = std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    const __m256 inverse = _mm256_set1_ps(QuantizedRows::kMaxInteger / max);
    for (int half = 0; half < 2; ++half) {
      const __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(part[2 * half], inverse));
      const __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(part[2 * half + 1], inverse));
      blocks->sum[half] = ReduceAdd(_mm256_add_epi32(a, b));
      // Packing takes the 128-bit halves of a and b in turns.
      const __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xD8);
      _mm256_storeu_si256(out + half, _mm256_shuffle_epi8(packed, order));
    }
    blocks->scale = max / QuantizedRows::kMaxInteger;
    blocks->scaled_sum = blocks->scale * static_cast<float>(blocks->sum[0] + blocks->sum[1]);
  }
}

}  // namespace holmes::kernels::internal
