// One zmm lane is one output. The order law of linear.h fixes the arithmetic; the shapes below only fill the pipes:
// FMA latency 4 x 2 ports = 8 independent chains at least. Streaming takes 4 panels of up to 2 rows or 2 panels of up to 8 rows (at most 16
// accumulators beside scales, quants and a table: under 32 registers); tiles take 6 rows x 4 panels (24 accumulators, 4 loads and 6 broadcasts for 24
// FMAs, so the FMA ports are the limit, not the load ports).
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "kernels/linear/panel_kernels.h"

namespace holmes::kernels::internal {
namespace {

constexpr std::int64_t kLanes = PackedMatrix::kPanelRows;
constexpr int kInputs = PackedMatrix::kSliceInputs;
/// Inputs of a dequantised piece: 64 outputs x 128 inputs x 4 bytes = 32 KiB, which leaves room for the rows in a 48 KiB L1.
constexpr int kPieceSlices = 4;
constexpr int kPieceInputs = kPieceSlices * kInputs;

inline __m512 LoadHalf16(const std::byte* at) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at))); }

/// How a format turns a slice into weights: `Head` is read once per slice, At(i) gives input i of all 16 lanes.
template <PanelFormat kFormat>
struct Unpack;

template <>
struct Unpack<PanelFormat::kF32> {
  explicit Unpack(const std::byte* slice) : data(reinterpret_cast<const float*>(slice)) {}
  template <int kInput>
  __m512 At() { return _mm512_loadu_ps(data + kInput * kLanes); }
  const float* data;
};

template <>
struct Unpack<PanelFormat::kF16> {
  explicit Unpack(const std::byte* slice) : data(slice) {}
  template <int kInput>
  __m512 At() { return LoadHalf16(data + kInput * kLanes * 2); }
  const std::byte* data;
};

template <>
struct Unpack<PanelFormat::kBF16> {
  explicit Unpack(const std::byte* slice) : data(slice) {}
  template <int kInput>
  __m512 At() {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data + kInput * kLanes * 2));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  const std::byte* data;
};

template <>
struct Unpack<PanelFormat::kInt8> {
  explicit Unpack(const std::byte* slice) : scale(LoadHalf16(slice)), data(slice + kLanes * 2) {}
  template <int kInput>
  __m512 At() {
    const __m128i q = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + kInput * kLanes));
    return _mm512_mul_ps(scale, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(q)));
  }
  __m512 scale;
  const std::byte* data;
};

template <>
struct Unpack<PanelFormat::kInt8x16> {
  explicit Unpack(const std::byte* slice)
      : low(_mm512_loadu_ps(slice)), high(_mm512_loadu_ps(slice + kLanes * 4)), data(slice + 2 * kLanes * 4) {}
  template <int kInput>
  __m512 At() {
    const __m128i q = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + kInput * kLanes));
    return _mm512_mul_ps(kInput < 16 ? low : high, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(q)));
  }
  __m512 low, high;
  const std::byte* data;
};

/// 0.0 to 15.0; vpermps looks only at the low four bits of an index, so a shifted dword needs no mask.
inline __m512 NibbleTable() { return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }

struct UnpackNibbles {
  UnpackNibbles(__m512 scale_in, __m512 offset_in, const std::byte* data_in) : scale(scale_in), offset(offset_in), data(data_in) {}
  template <int kInput>
  __m512 At() {
    if constexpr (kInput % 8 == 0) word = _mm512_loadu_si512(data + kInput / 8 * kLanes * 4);
    const __m512i index = kInput % 8 == 0 ? word : _mm512_srli_epi32(word, 4 * (kInput % 8));
    return _mm512_fmadd_ps(scale, _mm512_permutexvar_ps(index, NibbleTable()), offset);
  }
  __m512 scale, offset;
  __m512i word = _mm512_setzero_si512();
  const std::byte* data;
};

template <>
struct Unpack<PanelFormat::kNibble> : UnpackNibbles {
  explicit Unpack(const std::byte* slice) : UnpackNibbles(LoadHalf16(slice), LoadHalf16(slice + kLanes * 2), slice + 2 * kLanes * 2) {}
};

template <>
struct Unpack<PanelFormat::kNibbleF> : UnpackNibbles {
  explicit Unpack(const std::byte* slice) : UnpackNibbles(_mm512_loadu_ps(slice), _mm512_loadu_ps(slice + kLanes * 4), slice + 2 * kLanes * 4) {}
};

/// Calls body.operator()<i>() for i = 0 .. kCount - 1, unrolled.
template <int kCount, typename Body>
inline __attribute__((always_inline)) void Unroll(Body&& body) {
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) __attribute__((always_inline)) { (body.template operator()<kIndex>(), ...); }
  (std::make_integer_sequence<int, kCount>());
}

inline void Epilogue(const LinearJob& job, std::int64_t panel, std::int64_t row, __m512 acc) {
  const std::int64_t left = job.w->n() - panel * kLanes;
  const __mmask16 mask = left >= kLanes ? 0xFFFF : static_cast<__mmask16>((1U << left) - 1U);
  float* y = job.y + row * job.ldy + panel * kLanes;
  if (job.options.bias != nullptr) acc = _mm512_add_ps(acc, _mm512_maskz_loadu_ps(mask, job.options.bias + panel * kLanes));
  if (job.options.accumulate) acc = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, y), acc);
  _mm512_mask_storeu_ps(y, mask, acc);
}

/// kPanels panels x kRows rows over all inputs.
template <PanelFormat kFormat, int kPanels, int kRows>
void StreamGroup(const LinearJob& job, std::int64_t panel) {
  const PackedMatrix& w = *job.w;
  __m512 acc[kPanels][kRows];
  for (int p = 0; p < kPanels; ++p) {
    for (int r = 0; r < kRows; ++r) acc[p][r] = _mm512_setzero_ps();
  }
  const std::byte* base[kPanels];
  for (int p = 0; p < kPanels; ++p) base[p] = w.panel(panel + p);
  const std::int64_t slice_bytes = w.slice_bytes();
  const std::int64_t whole = w.k() / kInputs;
  for (std::int64_t s = 0; s < w.num_slices(); ++s) {
    // The last slice of a k that is not a multiple of 32 reads its inputs from a zero-filled copy. Its products are exact zeros there (0 x 0).
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
      Unpack<kFormat> unpack[kPanels] = {Unpack<kFormat>(base[kP] + s * slice_bytes)...};
      Unroll<kInputs>([&]<int kInput>() __attribute__((always_inline)) {
        for (int p = 0; p < kPanels; ++p) {
          const __m512 weight = unpack[p].template At<kInput>();
          for (int r = 0; r < kRows; ++r) acc[p][r] = _mm512_fmadd_ps(weight, _mm512_set1_ps(x[r][kInput]), acc[p][r]);
        }
      });
    }
    (std::make_integer_sequence<int, kPanels>());
  }
  for (int p = 0; p < kPanels; ++p) {
    for (int r = 0; r < kRows; ++r) Epilogue(job, panel + p, r, acc[p][r]);
  }
}

template <PanelFormat kFormat, int kRows>
void StreamRows(const LinearJob& job, std::int64_t first, std::int64_t last) {
  constexpr int kPanels = kRows <= 2 ? 4 : 2;
  std::int64_t panel = first;
  for (; panel + kPanels <= last; panel += kPanels) StreamGroup<kFormat, kPanels, kRows>(job, panel);
  for (; panel < last; ++panel) StreamGroup<kFormat, 1, kRows>(job, panel);
}

template <PanelFormat kFormat>
void StreamFormat(const LinearJob& job, std::int64_t first, std::int64_t last) {
  using Function = void (*)(const LinearJob&, std::int64_t, std::int64_t);
  static constexpr Function kByRows[kStreamRows] = {StreamRows<kFormat, 1>, StreamRows<kFormat, 2>, StreamRows<kFormat, 3>, StreamRows<kFormat, 4>,
                                                    StreamRows<kFormat, 5>, StreamRows<kFormat, 6>, StreamRows<kFormat, 7>, StreamRows<kFormat, 8>};
  kByRows[job.rows - 1](job, first, last);
}

/// weights [count][num_panels * 16] of slices [slice, slice + num_slices) of a panel, written at column `column` of rows of 64.
template <PanelFormat kFormat>
void Dequantize(const std::byte* slices, std::int64_t slice_bytes, std::int64_t num_slices, float* out) {
  for (std::int64_t s = 0; s < num_slices; ++s) {
    Unpack<kFormat> unpack(slices + s * slice_bytes);
    float* at = out + s * kInputs * kGroupRows;
    Unroll<kInputs>([&]<int kInput>() __attribute__((always_inline)) { _mm512_store_ps(at + kInput * kGroupRows, unpack.template At<kInput>()); });
  }
}

/// acc[kRows][64] += x[kRows][count] * weights[count][64], kept in registers over the piece.
template <int kRows>
inline void MultiplyTile(const float* weights, const float* x, std::int64_t ldx, std::int64_t count, float* acc) {
  __m512 sum[kRows][kGroupPanels];
  for (int r = 0; r < kRows; ++r) {
    for (int p = 0; p < kGroupPanels; ++p) sum[r][p] = _mm512_load_ps(acc + r * kGroupRows + p * kLanes);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    __m512 w[kGroupPanels];
    for (int p = 0; p < kGroupPanels; ++p) w[p] = _mm512_load_ps(weights + i * kGroupRows + p * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const __m512 value = _mm512_set1_ps(x[r * ldx + i]);
      for (int p = 0; p < kGroupPanels; ++p) sum[r][p] = _mm512_fmadd_ps(w[p], value, sum[r][p]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int p = 0; p < kGroupPanels; ++p) _mm512_store_ps(acc + r * kGroupRows + p * kLanes, sum[r][p]);
  }
}

void MultiplyRows(const float* weights, const float* x, std::int64_t ldx, std::int64_t count, float* acc, std::int64_t num_rows) {
  constexpr std::int64_t kRows = 6;
  std::int64_t r = 0;
  for (; r + kRows <= num_rows; r += kRows) MultiplyTile<6>(weights, x + r * ldx, ldx, count, acc + r * kGroupRows);
  using Function = void (*)(const float*, const float*, std::int64_t, std::int64_t, float*);
  static constexpr Function kRest[kRows] = {nullptr, MultiplyTile<1>, MultiplyTile<2>, MultiplyTile<3>, MultiplyTile<4>, MultiplyTile<5>};
  if (r < num_rows) kRest[num_rows - r](weights, x + r * ldx, ldx, count, acc + r * kGroupRows);
}

/// Scratch of one thread: a dequantised piece and the accumulators of a tile's rows.
struct Scratch {
  static constexpr std::int64_t kRows = 512;
  alignas(64) float weights[kPieceInputs * kGroupRows];
  alignas(64) float acc[kRows * kGroupRows];
};

template <PanelFormat kFormat>
void TileFormat(const LinearJob& job, std::int64_t first, std::int64_t last, std::int64_t row, std::int64_t num_rows) {
  static thread_local std::unique_ptr<Scratch> scratch = std::make_unique<Scratch>();
  const PackedMatrix& w = *job.w;
  for (std::int64_t at = 0; at < num_rows; at += Scratch::kRows) {
    const std::int64_t rows = std::min(Scratch::kRows, num_rows - at);
    std::memset(scratch->acc, 0, static_cast<std::size_t>(rows) * kGroupRows * sizeof(float));
    for (std::int64_t s = 0; s < w.num_slices(); s += kPieceSlices) {
      const std::int64_t slices = std::min<std::int64_t>(kPieceSlices, w.num_slices() - s);
      for (std::int64_t p = first; p < last; ++p) {
        Dequantize<kFormat>(w.panel(p) + s * w.slice_bytes(), w.slice_bytes(), slices, scratch->weights + (p - first) * kLanes);
      }
      const std::int64_t count = std::min(slices * kInputs, w.k() - s * kInputs);
      MultiplyRows(scratch->weights, job.x + (row + at) * job.ldx + s * kInputs, job.ldx, count, scratch->acc, rows);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t p = first; p < last; ++p) {
        Epilogue(job, p, row + at + r, _mm512_load_ps(scratch->acc + r * kGroupRows + (p - first) * kLanes));
      }
    }
  }
}

template <template <PanelFormat> typename Pick, typename... Args>
void Dispatch(PanelFormat format, Args&&... args) {
  switch (format) {
    case PanelFormat::kF32: return Pick<PanelFormat::kF32>::Run(args...);
    case PanelFormat::kF16: return Pick<PanelFormat::kF16>::Run(args...);
    case PanelFormat::kBF16: return Pick<PanelFormat::kBF16>::Run(args...);
    case PanelFormat::kInt8: return Pick<PanelFormat::kInt8>::Run(args...);
    case PanelFormat::kInt8x16: return Pick<PanelFormat::kInt8x16>::Run(args...);
    case PanelFormat::kNibble: return Pick<PanelFormat::kNibble>::Run(args...);
    case PanelFormat::kNibbleF: return Pick<PanelFormat::kNibbleF>::Run(args...);
  }
}

template <PanelFormat kFormat>
struct PickStream {
  static void Run(const LinearJob& job, std::int64_t first, std::int64_t last) { StreamFormat<kFormat>(job, first, last); }
};

template <PanelFormat kFormat>
struct PickTile {
  static void Run(const LinearJob& job, std::int64_t first, std::int64_t last, std::int64_t row, std::int64_t num_rows) {
    TileFormat<kFormat>(job, first, last, row, num_rows);
  }
};

void Stream(const LinearJob& job, std::int64_t first, std::int64_t last) { Dispatch<PickStream>(job.w->format(), job, first, last); }

void Tile(const LinearJob& job, std::int64_t first, std::int64_t last, std::int64_t row, std::int64_t num_rows) {
  Dispatch<PickTile>(job.w->format(), job, first, last, row, num_rows);
}

}  // namespace

const PanelKernels& Avx512Kernels() {
  static constexpr PanelKernels kKernels{Stream, Tile};
  return kKernels;
}

}  // namespace holmes::kernels::internal
