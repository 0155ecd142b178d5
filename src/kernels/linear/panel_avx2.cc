// All formats with AVX2: a panel's 16 outputs are two ymm registers, one lane an output. Integer
// formats multiply 16-bit activations with weights widened to 16 bits (vpmaddwd), so one product
// does what the byte instructions of other levels need two for, and the bits are theirs.
//
// Shapes for 16 registers: 4 panels x 1 row, 2 x 2 and 1 x 4, eight accumulators in each; unpacking
// is shared by the rows taken together. More rows run in chunks over a group, which stays in L2.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "kernels/linear/panel_kernels.h"
#include "kernels/linear/slice.h"
#include "kernels/simd/unroll.h"

namespace holmes::kernels::internal {
namespace {

constexpr std::int64_t kLanes = PackedMatrix::kPanelRows;
constexpr int kInputs = PackedMatrix::kSliceInputs;
constexpr int kMaxRows = 4;
constexpr int kStreamRows = 8;
/// How far ahead of its use a line is asked for.
constexpr std::int64_t kPrefetchBytes = 4096;

template <std::int64_t kBytes>
inline __attribute__((always_inline)) void Prefetch(const std::byte* at) {
  for (std::int64_t b = 0; b < kBytes; b += 64) _mm_prefetch(at + b, _MM_HINT_T0);
}

inline __m256i LoadBytes(const std::byte* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

inline __m256 LoadHalf8(const std::byte* at) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}

inline __m256 LoadFloat8(const std::byte* at) {
  return _mm256_loadu_ps(reinterpret_cast<const float*>(at));
}

/// Bias, accumulation and the store of one row's 16 outputs.
void Epilogue(const LinearJob& job, std::int64_t panel, std::int64_t row, const __m256* acc) {
  const std::int64_t left = job.w->n() - panel * kLanes;
  float* y = job.y + row * job.ldy + panel * kLanes;
  const float* bias = job.options.bias == nullptr ? nullptr : job.options.bias + panel * kLanes;
  if (left >= kLanes) [[likely]] {
    for (int h = 0; h < 2; ++h) {
      __m256 sum = acc[h];
      if (bias != nullptr) sum = _mm256_add_ps(sum, _mm256_loadu_ps(bias + 8 * h));
      if (job.options.accumulate) sum = _mm256_add_ps(_mm256_loadu_ps(y + 8 * h), sum);
      _mm256_storeu_ps(y + 8 * h, sum);
    }
    return;
  }
  float sums[kLanes];
  for (int h = 0; h < 2; ++h) _mm256_storeu_ps(sums + 8 * h, acc[h]);
  for (std::int64_t i = 0; i < left; ++i) {
    const float sum = bias == nullptr ? sums[i] : sums[i] + bias[i];
    y[i] = job.options.accumulate ? y[i] + sum : sum;
  }
}

/// The head of one half panel's slice.
template <PanelFormat kFormat>
struct Scales {
  static constexpr int kScales = kInputs / ScaleInputs(kFormat);

  Scales(const std::byte* head, int half) {
    if constexpr (kFormat == PanelFormat::kInt8x16) {
      scale[0] = LoadFloat8(head + 32 * half);
      scale[1] = LoadFloat8(head + kLanes * 4 + 32 * half);
    } else if constexpr (kFormat == PanelFormat::kNibbleF) {
      scale[0] = LoadFloat8(head + 32 * half);
      offset = LoadFloat8(head + kLanes * 4 + 32 * half);
    } else {
      scale[0] = LoadHalf8(head + 16 * half);
      if constexpr (HasOffset(kFormat)) offset = LoadHalf8(head + kLanes * 2 + 16 * half);
    }
  }
  __m256 scale[kScales];
  __m256 offset = _mm256_setzero_ps();
};

/// kPanels panels of one group x kRows rows over all inputs.
template <PanelFormat kFormat, int kPanels, int kRows>
void IntegerGroup(const LinearJob& job, std::int64_t panel, std::int64_t row) {
  const PackedMatrix& w = *job.w;
  constexpr std::int64_t kBody = BodyBytes(kFormat);
  constexpr std::int64_t kHead = HeadBytes(kFormat);
  constexpr int kScales = Scales<kFormat>::kScales;
  constexpr int kHalves = 2 * kPanels;
  __m256 acc[kRows][kHalves];
  for (auto& of_row : acc) {
    for (__m256& a : of_row) a = _mm256_setzero_ps();
  }
  const std::int8_t* x[kRows];
  const QuantizedRows::Block* block[kRows];
  for (int r = 0; r < kRows; ++r) {
    x[r] = job.quantized->values(row + r);
    block[r] = job.quantized->blocks(row + r);
  }
  const std::int64_t stride = w.slice_stride(panel);
  const PanelSlice first = w.slice(panel, 0);
  const std::byte* head = first.head;
  const std::byte* body = first.body;
  for (std::int64_t s = 0; s < w.num_slices(); ++s, head += stride, body += stride) {
    Prefetch<kPanels * kHead>(head + kPrefetchBytes);
    Prefetch<kPanels * kBody>(body + kPrefetchBytes);
    Unroll<kScales>([&]<int kScale>() __attribute__((always_inline)) {
      __m256i sum[kRows][kHalves];
      Unroll<kRows>([&]<int kR>() __attribute__((always_inline)) {
        __m256i start = _mm256_setzero_si256();
        if constexpr (IntegerZero(kFormat) != 0) {
          const std::int32_t of_row =
              kScales == 1 ? block[kR]->sum[0] + block[kR]->sum[1] : block[kR]->sum[kScale];
          start = _mm256_set1_epi32(-IntegerZero(kFormat) * of_row);
        }
        Unroll<kHalves>([&]<int kH>() __attribute__((always_inline)) { sum[kR][kH] = start; });
      });
      // Pair 2 i is inputs 4 i and 4 i + 2, pair 2 i + 1 the other two.
      const auto multiply = [&](int of, int dword, auto unpack) __attribute__((always_inline)) {
        __m256i u[kHalves];
        Unroll<kHalves>([&]<int kH>() __attribute__((always_inline)) {
          u[kH] = unpack(LoadBytes(body + kH / 2 * kBody + dword * 64 + kH % 2 * 32));
        });
        Unroll<kRows>([&]<int kR>() __attribute__((always_inline)) {
          std::int32_t pair;
          std::memcpy(&pair, x[kR] + 4 * of, sizeof(pair));
          const __m256i inputs = _mm256_set1_epi32(pair);
          Unroll<kHalves>([&]<int kH>() __attribute__((always_inline)) {
            sum[kR][kH] = _mm256_add_epi32(sum[kR][kH], _mm256_madd_epi16(u[kH], inputs));
            // Keeps the order of the sums: regrouped, they need more registers than there are.
            asm("" : "+x"(sum[kR][kH]));
          });
        });
      };
      if constexpr (IsNibble(kFormat)) {
        constexpr int kDwords = kInputs / 8;  // low nibbles are the first half of the inputs
        const __m256i mask = _mm256_set1_epi16(15);
#pragma GCC unroll 1
        for (int i = 0; i < kDwords; ++i) {
          multiply(2 * i, i, [&](__m256i v) { return _mm256_and_si256(v, mask); });
          multiply(2 * i + 1, i, [&](__m256i v) {
            return _mm256_and_si256(_mm256_srli_epi16(v, 8), mask);
          });
          multiply(2 * (i + kDwords), i, [&](__m256i v) {
            return _mm256_and_si256(_mm256_srli_epi16(v, 4), mask);
          });
          multiply(2 * (i + kDwords) + 1, i, [](__m256i v) { return _mm256_srli_epi16(v, 12); });
        }
      } else {
        constexpr int kDwords = kInputs / 4 / kScales;
        const __m256i mask = _mm256_set1_epi16(255);
#pragma GCC unroll 1
        for (int i = kScale * kDwords; i < (kScale + 1) * kDwords; ++i) {
          multiply(2 * i, i, [&](__m256i v) { return _mm256_and_si256(v, mask); });
          multiply(2 * i + 1, i, [](__m256i v) { return _mm256_srli_epi16(v, 8); });
        }
      }
      Unroll<kHalves>([&]<int kH>() __attribute__((always_inline)) {
        const Scales<kFormat> scales(head + kH / 2 * kHead, kH % 2);
        Unroll<kRows>([&]<int kR>() __attribute__((always_inline)) {
          const __m256 factor =
              _mm256_mul_ps(scales.scale[kScale], _mm256_set1_ps(block[kR]->scale));
          __m256 a = _mm256_fmadd_ps(factor, _mm256_cvtepi32_ps(sum[kR][kH]), acc[kR][kH]);
          if constexpr (HasOffset(kFormat))
            a = _mm256_fmadd_ps(scales.offset, _mm256_set1_ps(block[kR]->scaled_sum), a);
          acc[kR][kH] = a;
        });
      });
    });
    for (int r = 0; r < kRows; ++r) x[r] += 2 * kInputs, ++block[r];
  }
  for (int p = 0; p < kPanels; ++p) {
    for (int r = 0; r < kRows; ++r) Epilogue(job, panel + p, row + r, &acc[r][2 * p]);
  }
}

/// Eight weights of one input.
template <PanelFormat kFormat>
inline __m256 LoadWeights(const std::byte* at) {
  if constexpr (kFormat == PanelFormat::kF32) return LoadFloat8(at);
  if constexpr (kFormat == PanelFormat::kF16) return LoadHalf8(at);
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

template <PanelFormat kFormat, int kPanels, int kRows>
void FloatGroup(const LinearJob& job, std::int64_t panel, std::int64_t row) {
  const PackedMatrix& w = *job.w;
  constexpr std::int64_t kBody = BodyBytes(kFormat);
  constexpr std::int64_t kHalfInput = kBody / kInputs / 2;  // bytes of eight weights
  constexpr int kHalves = 2 * kPanels;
  __m256 acc[kRows][kHalves];
  Unroll<kRows * kHalves>([&]<int kI>() __attribute__((always_inline)) {
    acc[kI / kHalves][kI % kHalves] = _mm256_setzero_ps();
  });
  const float* x[kRows];
  for (int r = 0; r < kRows; ++r) x[r] = job.x + (row + r) * job.ldx;
  const std::int64_t stride = w.slice_stride(panel);
  const std::byte* body = w.slice(panel, 0).body;
  for (std::int64_t s = 0; s < w.num_slices(); ++s, body += stride) {
    const std::int64_t count = std::min<std::int64_t>(kInputs, w.k() - s * kInputs);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::byte* at = body + i * 2 * kHalfInput;
      Unroll<kPanels>([&]<int kP>() __attribute__((always_inline)) {
        Prefetch<2 * kHalfInput>(at + kP * kBody + kPrefetchBytes);
      });
      __m256 weights[kHalves];
      Unroll<kHalves>([&]<int kH>() __attribute__((always_inline)) {
        weights[kH] = LoadWeights<kFormat>(at + kH / 2 * kBody + kH % 2 * kHalfInput);
      });
      Unroll<kRows>([&]<int kR>() __attribute__((always_inline)) {
        const __m256 value = _mm256_set1_ps(x[kR][i]);
        Unroll<kHalves>([&]<int kH>() __attribute__((always_inline)) {
          acc[kR][kH] = _mm256_fmadd_ps(weights[kH], value, acc[kR][kH]);
        });
      });
    }
    for (int r = 0; r < kRows; ++r) x[r] += kInputs;
  }
  for (int p = 0; p < kPanels; ++p) {
    for (int r = 0; r < kRows; ++r) Epilogue(job, panel + p, row + r, &acc[r][2 * p]);
  }
}

template <PanelFormat kFormat, int kPanels, int kRows>
inline void GroupOf(const LinearJob& job, std::int64_t panel, std::int64_t row) {
  if constexpr (IsInteger(kFormat)) {
    IntegerGroup<kFormat, kPanels, kRows>(job, panel, row);
  } else {
    FloatGroup<kFormat, kPanels, kRows>(job, panel, row);
  }
}

/// Panels [first, last) of one group.
template <PanelFormat kFormat, int kRows>
void Rows(const LinearJob& job, std::int64_t first, std::int64_t last, std::int64_t row) {
  constexpr int kPanels = kRows == 1 ? 4 : kRows == 2 ? 2 : 1;
  std::int64_t panel = first;
  for (; panel + kPanels <= last; panel += kPanels)
    GroupOf<kFormat, kPanels, kRows>(job, panel, row);
  if constexpr (kPanels > 1) {
    for (; panel < last; ++panel) GroupOf<kFormat, 1, kRows>(job, panel, row);
  }
}

template <PanelFormat kFormat>
void Group(const LinearJob& job,
           std::int64_t first,
           std::int64_t last,
           std::int64_t row,
           std::int64_t num_rows) {
  using Function = void (*)(const LinearJob&, std::int64_t, std::int64_t, std::int64_t);
  static constexpr Function kByRows[kMaxRows] = {
      Rows<kFormat, 1>, Rows<kFormat, 2>, Rows<kFormat, 3>, Rows<kFormat, 4>};
  for (std::int64_t at = 0; at < num_rows; at += kMaxRows) {
    const std::int64_t rows = std::min<std::int64_t>(kMaxRows, num_rows - at);
    kByRows[rows - 1](job, first, last, row + at);
  }
}

void Tile(const LinearJob& job,
          std::int64_t first,
          std::int64_t last,
          std::int64_t row,
          std::int64_t num_rows) {
  switch (job.w->format()) {
    case PanelFormat::kF32:
      return Group<PanelFormat::kF32>(job, first, last, row, num_rows);
    case PanelFormat::kF16:
      return Group<PanelFormat::kF16>(job, first, last, row, num_rows);
    case PanelFormat::kBF16:
      return Group<PanelFormat::kBF16>(job, first, last, row, num_rows);
    case PanelFormat::kInt8:
      return Group<PanelFormat::kInt8>(job, first, last, row, num_rows);
    case PanelFormat::kInt8x16:
      return Group<PanelFormat::kInt8x16>(job, first, last, row, num_rows);
    case PanelFormat::kNibble:
      return Group<PanelFormat::kNibble>(job, first, last, row, num_rows);
    case PanelFormat::kNibbleF:
      return Group<PanelFormat::kNibbleF>(job, first, last, row, num_rows);
    case PanelFormat::kNibbleMinus8:
      return Group<PanelFormat::kNibbleMinus8>(job, first, last, row, num_rows);
  }
}

void Stream(const LinearJob& job, std::int64_t first, std::int64_t last) {
  for (std::int64_t panel = first; panel < last;) {
    const std::int64_t end = std::min(last, (panel / kGroupPanels + 1) * kGroupPanels);
    Tile(job, panel, end, 0, job.rows);
    panel = end;
  }
}

}  // namespace

const PanelKernels& Avx2Kernels() {
  static constexpr PanelKernels kKernels{Stream, Tile, kStreamRows};
  return kKernels;
}

}  // namespace holmes::kernels::internal
