/// What the integer kernels share; only for files compiled for AVX-512.
#pragma once

#include "kernels/linear/panel_simd.h"
#include "kernels/linear/slice.h"

namespace holmes::kernels::internal {

inline constexpr int kSliceInputs = PackedMatrix::kSliceInputs;
/// Unpacked integers of one panel and slice: [8][16] dwords of four inputs each.
inline constexpr int kSliceIntegers = kSliceInputs * PackedMatrix::kPanelRows;

/// The head of one panel's slice.
template <PanelFormat kFormat>
struct PanelScales {
  static constexpr int kScales = kSliceInputs / ScaleInputs(kFormat);

  explicit PanelScales(const std::byte* head) {
    if constexpr (kFormat == PanelFormat::kInt8x16) {
      scale[0] = _mm512_loadu_ps(head);
      scale[1] = _mm512_loadu_ps(head + kLanes * 4);
    } else if constexpr (kFormat == PanelFormat::kNibbleF) {
      scale[0] = _mm512_loadu_ps(head);
      offset = _mm512_loadu_ps(head + kLanes * 4);
    } else {
      scale[0] = LoadHalf16(head);
      if constexpr (HasOffset(kFormat)) offset = LoadHalf16(head + kLanes * 2);
    }
  }
  __m512 scale[kScales];
  __m512 offset = _mm512_setzero_ps();
};

/// zero x the sum of the row's integers that share scale number `index`: to be subtracted.
template <PanelFormat kFormat>
inline __m512i ZeroTerm(const QuantizedRows::Block& block, int index) {
  if constexpr (PanelScales<kFormat>::kScales == 1) {
    return _mm512_set1_epi32(IntegerZero(kFormat) * (block.sum[0] + block.sum[1]));
  } else {
    return _mm512_set1_epi32(IntegerZero(kFormat) * block.sum[index]);
  }
}

/// The order law's step for one row and one scale; `total` is sum (u - zero) X, the floats are the
/// row's block.
template <PanelFormat kFormat>
inline __attribute__((always_inline)) __m512 AddScaled(const PanelScales<kFormat>& scales,
                                                       int index,
                                                       const float& row_scale,
                                                       const float& scaled_sum,
                                                       __m512i total,
                                                       __m512 acc) {
  const __m512 factor = _mm512_mul_ps(scales.scale[index], _mm512_set1_ps(row_scale));
  acc = _mm512_fmadd_ps(factor, _mm512_cvtepi32_ps(total), acc);
  if constexpr (HasOffset(kFormat))
    acc = _mm512_fmadd_ps(scales.offset, _mm512_set1_ps(scaled_sum), acc);
  return acc;
}

}  // namespace holmes::kernels::internal
