/// What the AVX-512 kernels share; only for files compiled for it.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/linear/linear.h"
#include "kernels/simd/unroll.h"

namespace holmes::kernels::internal {

inline constexpr std::int64_t kLanes = PackedMatrix::kPanelRows;

inline __m512 LoadHalf16(const std::byte* at) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
}

/// Bias, accumulation and the store of one row's 16 outputs.
inline void Epilogue(const LinearJob& job, std::int64_t panel, std::int64_t row, __m512 acc) {
  const std::int64_t left = job.w->n() - panel * kLanes;
  const __mmask16 mask = left >= kLanes ? 0xFFFF : static_cast<__mmask16>((1U << left) - 1U);
  float* y = job.y + row * job.ldy + panel * kLanes;
  if (job.options.bias != nullptr)
    acc = _mm512_add_ps(acc, _mm512_maskz_loadu_ps(mask, job.options.bias + panel * kLanes));
  if (job.options.accumulate) acc = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, y), acc);
  _mm512_mask_storeu_ps(y, mask, acc);
}

/// Asks for kBytes that will be read later; past the end of the matrix this is a hint for nothing.
template <std::int64_t kBytes>
inline __attribute__((always_inline)) void Prefetch(const std::byte* at) {
  for (std::int64_t b = 0; b < kBytes; b += 64) _mm_prefetch(at + b, _MM_HINT_T0);
}

}  // namespace holmes::kernels::internal
