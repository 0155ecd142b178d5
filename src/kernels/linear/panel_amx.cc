// Integer formats with AMX: one tile product multiplies 16 rows with the 32 inputs of a panel's
// slice, once for the rows' high bytes and once for their low ones. Its exact sums go through a
// small buffer to AVX-512, which scales them as the order law says, so the bits are those of
// panel_vnni.cc.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "kernels/linear/panel_integer.h"
#include "kernels/linear/panel_kernels.h"

namespace holmes::kernels::internal {
namespace {

constexpr int kTileRows = QuantizedRows::kTileRows;
/// What is left of a piece goes to the VNNI kernels when it has at most this many rows.
constexpr std::int64_t kVnniRows = 8;
/// Bytes of one panel's slice as a tile: 8 dwords of four inputs x 16 outputs.
constexpr std::int64_t kWeightTile = kSliceIntegers;

/// LDTILECFG's operand (Intel's instruction-set reference, volume 1, chapter 18).
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {};
  std::uint8_t rows[16] = {};
};

/// Tiles 0 to 3: sums, two sets of (high, low). 4 and 5: the rows' high and low bytes. 6: weights.
constexpr TileConfig MakeConfig() {
  TileConfig config;
  for (int sums = 0; sums < 4; ++sums)
    config.bytes_per_row[sums] = 64, config.rows[sums] = kTileRows;
  for (int rows = 4; rows < 6; ++rows)
    config.bytes_per_row[rows] = kSliceInputs, config.rows[rows] = kTileRows;
  config.bytes_per_row[6] = 64;
  config.rows[6] = kSliceInputs / 4;
  return config;
}
constexpr TileConfig kConfig = MakeConfig();

/// Holds the thread's tile state for as long as a kernel runs: idle tiles cost nothing when the
/// thread is switched. Instructions by hand, since g++ 12's intrinsics tell the optimiser of less
/// memory than they touch.
class TileScope {
 public:
  TileScope() { asm volatile("ldtilecfg %0" : : "m"(kConfig) : "memory"); }
  ~TileScope() { asm volatile("tilerelease" : : : "memory"); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

/// The sums of one step: [0] of the high bytes, [1] of the low ones.
struct alignas(64) Sums {
  std::int32_t value[2][kTileRows][16];
};

/// Set kSet = products of 16 rows at `x` with the weight tile.
template <int kSet>
inline __attribute__((always_inline)) void Multiply(const std::int8_t* x,
                                                    std::int64_t x_stride,
                                                    const std::int8_t* weights) {
#define HOLMES_MULTIPLY(high, low)                                 \
  asm volatile(                                                    \
      "tileloadd (%0,%1,1), %%tmm4\n\t"                            \
      "tileloadd (%2,%3,1), %%tmm6\n\t"                            \
      "tilezero %%" high                                           \
      "\n\t"                                                       \
      "tdpbssd %%tmm6, %%tmm4, %%" high                            \
      "\n\t"                                                       \
      "tileloadd 32(%0,%1,1), %%tmm5\n\t"                          \
      "tilezero %%" low                                            \
      "\n\t"                                                       \
      "tdpbssd %%tmm6, %%tmm5, %%" low                             \
      :                                                            \
      : "r"(x), "r"(x_stride), "r"(weights), "r"(std::int64_t{64}) \
      : "memory")
  if constexpr (kSet == 0) {
    HOLMES_MULTIPLY("tmm0", "tmm1");
  } else {
    HOLMES_MULTIPLY("tmm2", "tmm3");
  }
#undef HOLMES_MULTIPLY
}

template <int kSet>
inline __attribute__((always_inline)) void StoreSums(Sums& sums) {
  if constexpr (kSet == 0) {
    asm volatile("tilestored %%tmm0, (%0,%2,1)\n\ttilestored %%tmm1, (%1,%2,1)"
                 :
                 : "r"(sums.value[0]), "r"(sums.value[1]), "r"(std::int64_t{64})
                 : "memory");
  } else {
    asm volatile("tilestored %%tmm2, (%0,%2,1)\n\ttilestored %%tmm3, (%1,%2,1)"
                 :
                 : "r"(sums.value[0]), "r"(sums.value[1]), "r"(std::int64_t{64})
                 : "memory");
  }
}

/// Of a tile of rows, slice by slice: what AddScaled wants of each row.
struct SliceScales {
  float scale[kTileRows];
  float scaled_sum[kTileRows];
};

/// A thread's buffers, grown to the longest inputs seen.
struct Scratch {
  std::vector<std::int8_t> weights;  // [kGroupPanels][slices][kWeightTile], signed
  std::vector<SliceScales> scales;   // [slices]
};

Scratch& ThreadScratch() {
  thread_local Scratch scratch;
  return scratch;
}

/// u - zero of one panel and slice as signed bytes, in the layout of a tile.
template <PanelFormat kFormat>
inline void UnpackSlice(const std::byte* body, std::int8_t* out) {
  if constexpr (IsNibble(kFormat)) {
    const __m512i mask = _mm512_set1_epi8(15);
    const __m512i zero = _mm512_set1_epi8(IntegerZero(kFormat));
    constexpr int kHalf = kSliceInputs / 8;  // low nibbles are the first half of the dwords
    for (int i = 0; i < kHalf; ++i) {
      const __m512i bytes = _mm512_loadu_si512(body + i * 64);
      const __m512i low = _mm512_and_si512(bytes, mask);
      const __m512i high = _mm512_and_si512(_mm512_srli_epi32(bytes, 4), mask);
      _mm512_storeu_si512(out + i * 64, _mm512_sub_epi8(low, zero));
      _mm512_storeu_si512(out + (i + kHalf) * 64, _mm512_sub_epi8(high, zero));
    }
  } else {
    const __m512i flip = _mm512_set1_epi8(static_cast<char>(0x80));  // u - 128
    for (int i = 0; i < kSliceInputs / 4; ++i)
      _mm512_storeu_si512(out + i * 64, _mm512_xor_si512(_mm512_loadu_si512(body + i * 64), flip));
  }
}

/// acc += the step's sums, scaled.
template <PanelFormat kFormat>
inline __attribute__((always_inline)) void Scale(const Sums& sums,
                                                 const std::byte* head,
                                                 const SliceScales& rows,
                                                 __m512* acc) {
  const PanelScales<kFormat> scales(head);
  Unroll<kTileRows>([&]<int kRow>() __attribute__((always_inline)) {
    const __m512i total =
        _mm512_add_epi32(_mm512_slli_epi32(_mm512_load_si512(sums.value[0][kRow]), 8),
                         _mm512_load_si512(sums.value[1][kRow]));
    acc[kRow] = AddScaled(scales, 0, rows.scale[kRow], rows.scaled_sum[kRow], total, acc[kRow]);
  });
}

/// One panel, 16 rows. A step is a slice: while slice s is scaled, the sums of s + 1 are stored and
/// s + 2 is multiplied.
template <PanelFormat kFormat>
void PanelRows16(const LinearJob& job,
                 std::int64_t panel,
                 std::int64_t row,
                 std::int64_t num_rows,
                 const std::int8_t* weights,
                 const SliceScales* scales) {
  const PackedMatrix& w = *job.w;
  const std::int64_t slices = w.num_slices();
  const std::int64_t x_stride = job.quantized->row_bytes();
  const std::int8_t* x = job.quantized->values(row);
  const std::byte* head = w.slice(panel, 0).head;
  const std::int64_t head_stride = w.slice_stride(panel);
  Sums sums[2];
  __m512 acc[kTileRows];
  // Unrolled in the source: indexed by a variable anywhere, it would lie in memory.
  Unroll<kTileRows>([&]<int kRow>()
                        __attribute__((always_inline)) { acc[kRow] = _mm512_setzero_ps(); });
  const auto multiply = [&]<int kSet>(std::int64_t s) __attribute__((always_inline)) {
    Multiply<kSet>(x + s * 2 * kSliceInputs, x_stride, weights + s * kWeightTile);
  };
  const auto step = [&]<int kSet>(std::int64_t s) __attribute__((always_inline)) {
    if (s + 1 < slices) StoreSums<1 - kSet>(sums[1 - kSet]);
    if (s + 2 < slices) multiply.template operator()<kSet>(s + 2);
    Scale<kFormat>(sums[kSet], head + s * head_stride, scales[s], acc);
  };
  multiply.template operator()<0>(0);
  if (slices > 1) multiply.template operator()<1>(1);
  StoreSums<0>(sums[0]);
  std::int64_t s = 0;
  for (; s + 2 <= slices; s += 2) {
    step.template operator()<0>(s);
    step.template operator()<1>(s + 1);
  }
  if (s < slices) step.template operator()<0>(s);
  Unroll<kTileRows>([&]<int kRow>() __attribute__((always_inline)) {
    if (kRow < num_rows) Epilogue(job, panel, row + kRow, acc[kRow]);
  });
}

template <PanelFormat kFormat>
void Group(const LinearJob& job,
           std::int64_t first,
           std::int64_t last,
           std::int64_t row,
           std::int64_t num_rows) {
  const PackedMatrix& w = *job.w;
  const std::int64_t slices = w.num_slices();
  Scratch& scratch = ThreadScratch();
  const std::int64_t panel_bytes = slices * kWeightTile;
  if (static_cast<std::int64_t>(scratch.weights.size()) < kGroupPanels * panel_bytes) {
    scratch.weights.resize(static_cast<std::size_t>(kGroupPanels * panel_bytes));
    scratch.scales.resize(static_cast<std::size_t>(slices));
  }
  std::int8_t* const weights = scratch.weights.data();
  SliceScales* const scales = scratch.scales.data();
  for (std::int64_t panel = first; panel < last; ++panel) {
    const std::byte* body = w.slice(panel, 0).body;
    const std::int64_t stride = w.slice_stride(panel);
    for (std::int64_t s = 0; s < slices; ++s, body += stride) {
      Prefetch<BodyBytes(kFormat)>(body + 4 * stride);
      UnpackSlice<kFormat>(body, weights + (panel - first) * panel_bytes + s * kWeightTile);
    }
  }
  const TileScope tiles;
  std::int64_t at = 0;
  for (; num_rows - at > kVnniRows; at += kTileRows) {
    for (int r = 0; r < kTileRows; ++r) {
      const QuantizedRows::Block* block = job.quantized->blocks(row + at + r);
      for (std::int64_t s = 0; s < slices; ++s) {
        scales[s].scale[r] = block[s].scale;
        scales[s].scaled_sum[r] = block[s].scaled_sum;
      }
    }
    for (std::int64_t panel = first; panel < last; ++panel) {
      PanelRows16<kFormat>(job,
                           panel,
                           row + at,
                           std::min<std::int64_t>(kTileRows, num_rows - at),
                           weights + (panel - first) * panel_bytes,
                           scales);
    }
  }
  if (at < num_rows) VnniKernels().tile(job, first, last, row + at, num_rows - at);
}

void Tile(const LinearJob& job,
          std::int64_t first,
          std::int64_t last,
          std::int64_t row,
          std::int64_t num_rows) {
  if (num_rows <= kVnniRows) return VnniKernels().tile(job, first, last, row, num_rows);
  switch (job.w->format()) {
    case PanelFormat::kInt8:
      return Group<PanelFormat::kInt8>(job, first, last, row, num_rows);
    case PanelFormat::kNibble:
      return Group<PanelFormat::kNibble>(job, first, last, row, num_rows);
    case PanelFormat::kNibbleF:
      return Group<PanelFormat::kNibbleF>(job, first, last, row, num_rows);
    case PanelFormat::kNibbleMinus8:
      return Group<PanelFormat::kNibbleMinus8>(job, first, last, row, num_rows);
    default:  // kInt8x16 has two scales to a slice
      return VnniKernels().tile(job, first, last, row, num_rows);
  }
}

}  // namespace

const PanelKernels& AmxKernels() {
  static constexpr std::int64_t kMaxStreamRows = 16;
  static const PanelKernels kKernels{VnniKernels().stream, Tile, kMaxStreamRows};
  return kKernels;
}

}  // namespace holmes::kernels::internal
