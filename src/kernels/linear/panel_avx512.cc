// One zmm lane is one output. The order law of linear.h fixes the arithmetic; the shapes below only
// fill the pipes: FMA latency 4 x 2 ports = 8 independent chains at least. Streaming takes 4 panels
// of up to 4 rows or 2 panels of up to 8 rows (at most 16 accumulators beside scales, quants and a
// table); tiles take 6 rows x 4 panels (24 accumulators, 4 loads and 6 broadcasts for 24 FMAs, so
// the FMA ports are the limit, not the load ports).
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/check.h"
#include "kernels/linear/panel_kernels.h"
#include "kernels/linear/panel_simd.h"
#include "kernels/linear/slice.h"

namespace holmes::kernels::internal {
namespace {

/// Up to this many rows the weights are unpacked in registers; above, a piece of them is unpacked
/// once into the cache.
constexpr int kStreamRows = 8;
constexpr int kInputs = PackedMatrix::kSliceInputs;
/// Inputs of a dequantised piece: 64 outputs x 128 inputs x 4 bytes = 32 KiB, which leaves room for
/// the rows in a 48 KiB L1.
constexpr int kPieceSlices = 4;
constexpr int kPieceInputs = kPieceSlices * kInputs;

/// Up to this many rows stream four panels at once (16 accumulators), more rows two.
constexpr int kWideRows = 4;
/// How far ahead of its use a line is asked for: at some 10 GB/s and core, 4 KiB are the 400 ns of
/// a busy memory.
constexpr std::int64_t kPrefetchBytes = 4096;

template <PanelFormat kFormat>
inline constexpr std::int64_t kBodyBytes = BodyBytes(kFormat);

/// How a format turns a slice into weights: the head is read once, At<j>(octet) gives input 8 octet
/// + j of all 16 lanes.
template <PanelFormat kFormat>
struct Unpack;

template <>
struct Unpack<PanelFormat::kF32> {
  explicit Unpack(PanelSlice slice) : body(slice.body) {}
  template <int kJ>
  __m512 At(int octet) {
    return _mm512_loadu_ps(body + (8 * octet + kJ) * kLanes * 4);
  }
  const std::byte* body;
};

template <>
struct Unpack<PanelFormat::kF16> {
  explicit Unpack(PanelSlice slice) : body(slice.body) {}
  template <int kJ>
  __m512 At(int octet) {
    return LoadHalf16(body + (8 * octet + kJ) * kLanes * 2);
  }
  const std::byte* body;
};

template <>
struct Unpack<PanelFormat::kBF16> {
  explicit Unpack(PanelSlice slice) : body(slice.body) {}
  template <int kJ>
  __m512 At(int octet) {
    const __m256i bits =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(body + (8 * octet + kJ) * kLanes * 2));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  const std::byte* body;
};

/// kPanels panels of one group x kRows rows over all inputs.
template <PanelFormat kFormat, int kPanels, int kRows>
void StreamGroup(const LinearJob& job, std::int64_t panel) {
  const PackedMatrix& w = *job.w;
  __m512 acc[kPanels][kRows];
  for (int p = 0; p < kPanels; ++p) {
    for (int r = 0; r < kRows; ++r) acc[p][r] = _mm512_setzero_ps();
  }
  const std::int64_t stride = w.slice_stride(panel);
  PanelSlice at[kPanels];
  for (int p = 0; p < kPanels; ++p) at[p] = w.slice(panel + p, 0);
  const std::int64_t whole = w.k() / kInputs;
  for (std::int64_t s = 0; s < w.num_slices(); ++s) {
    // The last slice of a k that is not a multiple of 32 reads its inputs from a zero-filled copy.
    // Its products are exact zeros there (0 x 0).
    float padded[kRows][kInputs];
    const float* x[kRows];
    for (int r = 0; r < kRows; ++r) x[r] = job.x + r * job.ldx + s * kInputs;
    if (s == whole) [[unlikely]] {
      for (int r = 0; r < kRows; ++r) {
        std::fill_n(padded[r], kInputs, 0.0F);
        std::copy_n(x[r], w.k() - s * kInputs, padded[r]);
        x[r] = padded[r];
      }
    }
    [&]<int... kP>(std::integer_sequence<int, kP...>) __attribute__((always_inline)) {
      Unpack<kFormat> unpack[kPanels] = {Unpack<kFormat>(at[kP])...};
      for (int octet = 0; octet < kInputs / 8; ++octet) {
        Prefetch<kPanels * kBodyBytes<kFormat> / 4>(at[0].body + kPrefetchBytes +
                                                    octet * (kPanels * kBodyBytes<kFormat> / 4));
        Unroll<8>([&]<int kJ>() __attribute__((always_inline)) {
          for (int p = 0; p < kPanels; ++p) {
            const __m512 weight = unpack[p].template At<kJ>(octet);
            for (int r = 0; r < kRows; ++r)
              acc[p][r] = _mm512_fmadd_ps(weight, _mm512_set1_ps(x[r][8 * octet + kJ]), acc[p][r]);
          }
        });
      }
    }
    (std::make_integer_sequence<int, kPanels>());
    for (PanelSlice& slice : at) slice.body += stride;
  }
  for (int p = 0; p < kPanels; ++p) {
    for (int r = 0; r < kRows; ++r) Epilogue(job, panel + p, r, acc[p][r]);
  }
}

template <PanelFormat kFormat, int kRows>
void StreamRows(const LinearJob& job, std::int64_t first, std::int64_t last) {
  constexpr int kMaxPanels = kRows <= kWideRows ? 4 : 2;
  for (std::int64_t panel = first; panel < last;) {
    const std::int64_t group_end = (panel / kGroupPanels + 1) * kGroupPanels;
    const std::int64_t take = std::min<std::int64_t>(kMaxPanels, std::min(group_end, last) - panel);
    if constexpr (kMaxPanels == 4) {
      if (take == 4) StreamGroup<kFormat, 4, kRows>(job, panel);
      if (take == 3) StreamGroup<kFormat, 3, kRows>(job, panel);
    }
    if (take == 2) StreamGroup<kFormat, 2, kRows>(job, panel);
    if (take == 1) StreamGroup<kFormat, 1, kRows>(job, panel);
    panel += take;
  }
}

template <PanelFormat kFormat>
void StreamFormat(const LinearJob& job, std::int64_t first, std::int64_t last) {
  using Function = void (*)(const LinearJob&, std::int64_t, std::int64_t);
  static constexpr Function kByRows[kStreamRows] = {StreamRows<kFormat, 1>,
                                                    StreamRows<kFormat, 2>,
                                                    StreamRows<kFormat, 3>,
                                                    StreamRows<kFormat, 4>,
                                                    StreamRows<kFormat, 5>,
                                                    StreamRows<kFormat, 6>,
                                                    StreamRows<kFormat, 7>,
                                                    StreamRows<kFormat, 8>};
  kByRows[job.rows - 1](job, first, last);
}

/// weights [32 num_slices][16] of a panel from slice `first` on, written to rows of 64.
template <PanelFormat kFormat>
void Dequantize(const PackedMatrix& w,
                std::int64_t panel,
                std::int64_t first,
                std::int64_t num_slices,
                float* out) {
  const std::int64_t stride = w.slice_stride(panel);
  PanelSlice slice = w.slice(panel, first);
  for (std::int64_t s = 0; s < num_slices; ++s) {
    Unpack<kFormat> unpack(slice);
    Prefetch<kBodyBytes<kFormat>>(slice.body + kPieceSlices * stride);  // the next piece's
    for (int octet = 0; octet < kInputs / 8; ++octet, out += 8 * kGroupRows) {
      Unroll<8>([&]<int kJ>() __attribute__((always_inline)) {
        _mm512_store_ps(out + kJ * kGroupRows, unpack.template At<kJ>(octet));
      });
    }
    slice.body += stride;
  }
}

/// acc[kRows][64] += x[kRows][count] * weights[count][64], kept in registers over the piece.
template <int kRows>
inline void MultiplyTile(
    const float* weights, const float* x, std::int64_t ldx, std::int64_t count, float* acc) {
  __m512 sum[kRows][kGroupPanels];
  Unroll<kRows * kGroupPanels>([&]<int kI>() __attribute__((always_inline)) {
    sum[kI / kGroupPanels][kI % kGroupPanels] = _mm512_load_ps(acc + kI * kLanes);
  });
  for (std::int64_t i = 0; i < count; ++i) {
    if (i % kLanes == 0) {  // the same inputs of the next tile's rows, one line each
      Unroll<kRows>([&]<int kR>() __attribute__((always_inline)) {
        _mm_prefetch(x + (kRows + kR) * ldx + i, _MM_HINT_T0);
      });
    }
    __m512 w[kGroupPanels];
    Unroll<kGroupPanels>([&]<int kP>() __attribute__((always_inline)) {
      w[kP] = _mm512_load_ps(weights + i * kGroupRows + kP * kLanes);
    });
    Unroll<kRows>([&]<int kR>() __attribute__((always_inline)) {
      const __m512 value = _mm512_set1_ps(x[kR * ldx + i]);
      Unroll<kGroupPanels>([&]<int kP>() __attribute__((always_inline)) {
        sum[kR][kP] = _mm512_fmadd_ps(w[kP], value, sum[kR][kP]);
      });
    });
  }
  Unroll<kRows * kGroupPanels>([&]<int kI>() __attribute__((always_inline)) {
    _mm512_store_ps(acc + kI * kLanes, sum[kI / kGroupPanels][kI % kGroupPanels]);
  });
}

void MultiplyRows(const float* weights,
                  const float* x,
                  std::int64_t ldx,
                  std::int64_t count,
                  float* acc,
                  std::int64_t num_rows) {
  constexpr std::int64_t kRows = 6;
  std::int64_t r = 0;
  for (; r + kRows <= num_rows; r += kRows)
    MultiplyTile<6>(weights, x + r * ldx, ldx, count, acc + r * kGroupRows);
  using Function = void (*)(const float*, const float*, std::int64_t, std::int64_t, float*);
  static constexpr Function kRest[kRows] = {
      nullptr, MultiplyTile<1>, MultiplyTile<2>, MultiplyTile<3>, MultiplyTile<4>, MultiplyTile<5>};
  if (r < num_rows) kRest[num_rows - r](weights, x + r * ldx, ldx, count, acc + r * kGroupRows);
}

/// Scratch of one thread: a dequantised piece and the accumulators of a tile's rows.
struct Scratch {
  static constexpr std::int64_t kRows = 512;
  alignas(64) float weights[kPieceInputs * kGroupRows];
  alignas(64) float acc[kRows * kGroupRows];
};

template <PanelFormat kFormat>
void TileFormat(const LinearJob& job,
                std::int64_t first,
                std::int64_t last,
                std::int64_t row,
                std::int64_t num_rows) {
  static thread_local std::unique_ptr<Scratch> scratch = std::make_unique<Scratch>();
  const PackedMatrix& w = *job.w;
  for (std::int64_t at = 0; at < num_rows; at += Scratch::kRows) {
    const std::int64_t rows = std::min(Scratch::kRows, num_rows - at);
    std::memset(scratch->acc, 0, static_cast<std::size_t>(rows) * kGroupRows * sizeof(float));
    for (std::int64_t s = 0; s < w.num_slices(); s += kPieceSlices) {
      const std::int64_t slices = std::min<std::int64_t>(kPieceSlices, w.num_slices() - s);
      for (std::int64_t p = first; p < last; ++p) {
        Dequantize<kFormat>(w, p, s, slices, scratch->weights + (p - first) * kLanes);
      }
      const std::int64_t count = std::min(slices * kInputs, w.k() - s * kInputs);
      MultiplyRows(scratch->weights,
                   job.x + (row + at) * job.ldx + s * kInputs,
                   job.ldx,
                   count,
                   scratch->acc,
                   rows);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t p = first; p < last; ++p) {
        Epilogue(job,
                 p,
                 row + at + r,
                 _mm512_load_ps(scratch->acc + r * kGroupRows + (p - first) * kLanes));
      }
    }
  }
}

template <template <PanelFormat> typename Pick, typename... Args>
void Dispatch(PanelFormat format, Args&&... args) {
  switch (format) {
    case PanelFormat::kF32:
      return Pick<PanelFormat::kF32>::Run(args...);
    case PanelFormat::kF16:
      return Pick<PanelFormat::kF16>::Run(args...);
    case PanelFormat::kBF16:
      return Pick<PanelFormat::kBF16>::Run(args...);
    default:
      base::CheckFailed("a float format", "integer formats have kernels of their own");
  }
}

template <PanelFormat kFormat>
struct PickStream {
  static void Run(const LinearJob& job, std::int64_t first, std::int64_t last) {
    StreamFormat<kFormat>(job, first, last);
  }
};

template <PanelFormat kFormat>
struct PickTile {
  static void Run(const LinearJob& job,
                  std::int64_t first,
                  std::int64_t last,
                  std::int64_t row,
                  std::int64_t num_rows) {
    TileFormat<kFormat>(job, first, last, row, num_rows);
  }
};

void Stream(const LinearJob& job, std::int64_t first, std::int64_t last) {
  Dispatch<PickStream>(job.w->format(), job, first, last);
}

void Tile(const LinearJob& job,
          std::int64_t first,
          std::int64_t last,
          std::int64_t row,
          std::int64_t num_rows) {
  Dispatch<PickTile>(job.w->format(), job, first, last, row, num_rows);
}

}  // namespace

const PanelKernels& Avx512Kernels() {
  static constexpr PanelKernels kKernels{Stream, Tile, kStreamRows};
  return kKernels;
}

}  // namespace holmes::kernels::internal
