#include "kernels/linear/quantized_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "base/check.h"

namespace holmes::kernels {
namespace {

std::int64_t RoundUp(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

void* ZeroedOrDie(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(RoundUp(std::max<std::int64_t>(bytes, 1), 64));
  void* p = std::aligned_alloc(64, size);
  HOLMES_CHECK(p != nullptr, "no memory for activation buffers");
  return std::memset(p, 0, size);
}

}  // namespace

void QuantizedRows::Free::operator()(void* p) const { std::free(p); }

QuantizedRows::QuantizedRows(std::int64_t max_rows, std::int64_t max_k)
    : max_rows_(RoundUp(max_rows, kTileRows)),
      row_blocks_(RoundUp(max_k, kBlockInputs) / kBlockInputs) {
  values_.reset(static_cast<std::int8_t*>(ZeroedOrDie(max_rows_ * row_bytes())));
  blocks_.reset(static_cast<Block*>(
      ZeroedOrDie(max_rows_ * row_blocks_ * static_cast<std::int64_t>(sizeof(Block)))));
}

std::int64_t QuantizedRows::EstimateBytes(std::int64_t max_rows, std::int64_t max_k) {
  const std::int64_t blocks = RoundUp(max_k, kBlockInputs) / kBlockInputs + 1;
  return RoundUp(max_rows, kTileRows) * blocks *
         (2 * kBlockInputs + static_cast<std::int64_t>(sizeof(Block)));
}

void QuantizedRows::Quantize(const float* x,
                             std::int64_t ldx,
                             std::int64_t first_row,
                             std::int64_t num_rows,
                             std::int64_t first_input,
                             std::int64_t num_inputs,
                             Isa isa) {
  HOLMES_CHECK(first_row >= 0 && first_row + num_rows <= max_rows_ &&
                   first_input % kBlockInputs == 0 && first_input + num_inputs <= max_k(),
               "the rows do not fit their buffers");
  const auto quantize = isa == Isa::kScalar   ? internal::QuantizeRowScalar
                        : isa >= Isa::kAvx512 ? internal::QuantizeRowAvx512
                                              : internal::QuantizeRowAvx2;
  const std::int64_t block = first_input / kBlockInputs;
  for (std::int64_t r = 0; r < num_rows; ++r) {
    quantize(x + r * ldx,
             num_inputs,
             values_.get() + (first_row + r) * row_bytes() + block * 2 * kBlockInputs,
             blocks_.get() + (first_row + r) * row_blocks_ + block);
  }
}

namespace internal {

void QuantizeRowScalar(const float* x,
                       std::int64_t k,
                       std::int8_t* values,
                       QuantizedRows::Block* blocks) {
  constexpr std::int64_t kInputs = QuantizedRows::kBlockInputs;
  for (std::int64_t begin = 0; begin < k; begin += kInputs, values += 2 * kInputs, ++blocks) {
    float block[kInputs] = {};
    std::copy_n(x + begin, std::min(kInputs, k - begin), block);
    // Bit patterns of magnitudes are ordered as the magnitudes are, and NaN is above infinity.
    std::uint32_t max_bits = 0;
    for (const float value : block)
      max_bits = std::max(max_bits, std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU);
    std::memset(values, 0, 2 * kInputs);
    *blocks = {};
    if (max_bits >= 0x7F800000U) {
      blocks->scale = blocks->scaled_sum = std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    const float max = std::bit_cast<float>(max_bits);
    if (max < 1e-30F) continue;
    const float inverse = QuantizedRows::kMaxInteger / max;
    for (std::int64_t i = 0; i < kInputs; ++i) {
      const int value = static_cast<int>(std::nearbyint(block[i] * inverse));
      const int high = (value + 128) >> 8;
      values[i] = static_cast<std::int8_t>(high);
      values[kInputs + i] = static_cast<std::int8_t>(value - 256 * high);
      blocks->sum[i / 16] += value;
    }
    blocks->scale = max / QuantizedRows::kMaxInteger;
    blocks->scaled_sum = blocks->scale * static_cast<float>(blocks->sum[0] + blocks->sum[1]);
  }
}

}  // namespace internal
}  // namespace holmes::kernels
