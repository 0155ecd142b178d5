// Integer formats with vpdpbusd: one zmm lane is one output, a dword holds four inputs. Unpacking
// is shared by the rows taken together, so shapes go from 4 panels x 2 rows, which reuse each
// broadcast, to 1 panel x 8 rows, which reuse each unpacked register; 8 x 3 accumulators (high,
// low, float) in each.
#include <immintrin.h>

#include <algorithm>

#include "base/check.h"
#include "kernels/linear/panel_integer.h"
#include "kernels/linear/panel_kernels.h"

namespace holmes::kernels::internal {
namespace {

/// How far ahead of its use a line is asked for: at some 10 GB/s and core, 4 KiB are the 400 ns of
/// a busy memory.
constexpr std::int64_t kPrefetchBytes = 4096;
constexpr int kMaxRows = 8;

/// acc + u times the four bytes at `x`, in every lane. As an instruction of its own making, since
/// g++ 12 does not fold the broadcast into the product, which costs a tenth of the time.
inline __attribute__((always_inline)) __m512i AddProducts(__m512i acc,
                                                          __m512i u,
                                                          const std::int8_t* x) {
  asm("vpdpbusd %2%{1to16%}, %1, %0"
      : "+v"(acc)
      : "v"(u), "m"(*reinterpret_cast<const std::int8_t(*)[4]>(x)));
  return acc;
}

template <PanelFormat kFormat, int kPanels, int kRows>
void StreamGroup(const LinearJob& job, std::int64_t panel, std::int64_t row) {
  const PackedMatrix& w = *job.w;
  constexpr std::int64_t kBody = BodyBytes(kFormat);
  constexpr std::int64_t kHead = HeadBytes(kFormat);
  using Scales = PanelScales<kFormat>;
  constexpr int kDwords = kSliceInputs / 4 / Scales::kScales;  // of inputs with one scale
  __m512 acc[kPanels][kRows];
  for (auto& of_panel : acc) {
    for (__m512& a : of_panel) a = _mm512_setzero_ps();
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
    Unroll<Scales::kScales>([&]<int kScale>() __attribute__((always_inline)) {
      __m512i high[kPanels][kRows];
      __m512i low[kPanels][kRows];
      for (int r = 0; r < kRows; ++r) {
        const __m512i start =
            IntegerZero(kFormat) == 0
                ? _mm512_setzero_si512()
                : _mm512_sub_epi32(_mm512_setzero_si512(), ZeroTerm<kFormat>(*block[r], kScale));
        for (int p = 0; p < kPanels; ++p) {
          high[p][r] = _mm512_setzero_si512();
          low[p][r] = start;
        }
      }
      const auto multiply = [&](int dword, int p, __m512i u) __attribute__((always_inline)) {
        for (int r = 0; r < kRows; ++r) {
          const std::int8_t* values = x[r] + 4 * dword;
          high[p][r] = AddProducts(high[p][r], u, values);
          low[p][r] = AddProducts(low[p][r], u, values + kSliceInputs);
        }
      };
      if constexpr (IsNibble(kFormat)) {
        const __m512i mask = _mm512_set1_epi8(15);
        Unroll<kDwords / 2>([&]<int kI>() __attribute__((always_inline)) {
          for (int p = 0; p < kPanels; ++p) {
            const __m512i bytes = _mm512_loadu_si512(body + p * kBody + kI * 64);
            multiply(kI, p, _mm512_and_si512(bytes, mask));
            multiply(kI + kDwords / 2, p, _mm512_and_si512(_mm512_srli_epi32(bytes, 4), mask));
          }
        });
      } else {
        Unroll<kDwords>([&]<int kI>() __attribute__((always_inline)) {
          constexpr int kDword = kScale * kDwords + kI;
          for (int p = 0; p < kPanels; ++p)
            multiply(kDword, p, _mm512_loadu_si512(body + p * kBody + kDword * 64));
        });
      }
      for (int p = 0; p < kPanels; ++p) {
        const Scales scales(head + p * kHead);
        for (int r = 0; r < kRows; ++r) {
          const __m512i total = _mm512_add_epi32(_mm512_slli_epi32(high[p][r], 8), low[p][r]);
          acc[p][r] =
              AddScaled(scales, kScale, block[r]->scale, block[r]->scaled_sum, total, acc[p][r]);
        }
      }
    });
    for (int r = 0; r < kRows; ++r) x[r] += 2 * kSliceInputs, ++block[r];
  }
  for (int p = 0; p < kPanels; ++p) {
    for (int r = 0; r < kRows; ++r) Epilogue(job, panel + p, row + r, acc[p][r]);
  }
}

/// Panels [first, last) of one group.
template <PanelFormat kFormat, int kRows>
void Rows(const LinearJob& job, std::int64_t first, std::int64_t last, std::int64_t row) {
  constexpr int kPanels = kRows <= 2 ? 4 : kRows <= 4 ? 2 : 1;
  std::int64_t panel = first;
  for (; panel + kPanels <= last; panel += kPanels)
    StreamGroup<kFormat, kPanels, kRows>(job, panel, row);
  if constexpr (kPanels > 2) {  // where members' shares meet inside a group
    for (; panel + 2 <= last; panel += 2) StreamGroup<kFormat, 2, kRows>(job, panel, row);
  }
  if constexpr (kPanels > 1) {
    for (; panel < last; ++panel) StreamGroup<kFormat, 1, kRows>(job, panel, row);
  }
}

template <PanelFormat kFormat>
void Group(const LinearJob& job,
           std::int64_t first,
           std::int64_t last,
           std::int64_t row,
           std::int64_t num_rows) {
  using Function = void (*)(const LinearJob&, std::int64_t, std::int64_t, std::int64_t);
  static constexpr Function kByRows[kMaxRows] = {Rows<kFormat, 1>,
                                                 Rows<kFormat, 2>,
                                                 Rows<kFormat, 3>,
                                                 Rows<kFormat, 4>,
                                                 Rows<kFormat, 5>,
                                                 Rows<kFormat, 6>,
                                                 Rows<kFormat, 7>,
                                                 Rows<kFormat, 8>};
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
    default:
      base::CheckFailed("an integer format", "float formats have kernels of their own");
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

const PanelKernels& VnniKernels() {
  static constexpr PanelKernels kKernels{Stream, Tile, 2 * kMaxRows};
  return kKernels;
}

}  // namespace holmes::kernels::internal
