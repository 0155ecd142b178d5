/// Activation rows as 16-bit integers with one float32 scale per 32 inputs: what integer weight
/// formats are multiplied with.
///
/// With a = max |x| over the block: scale = a / 32639, X = round(x * (32639 / a)), ties to even, so
/// x is kept within scale / 2 = 2^-16 a. X = 256 high + low with both in [-128, 127]: products of
/// 8-bit integers serve both halves, and the sum over a block, below 2^31, is exact whatever the
/// instruction. A block with a NaN or an infinity has scale NaN, which makes its row's results NaN;
/// a block below 1e-30 counts as zero.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/cpu_features.h"

namespace holmes::kernels {

class QuantizedRows {
 public:
  static constexpr std::int64_t kBlockInputs = 32;
  /// Kernels read whole tiles of rows, so the buffers hold a multiple of this many.
  static constexpr std::int64_t kTileRows = 16;
  static constexpr float kMaxInteger = 32639.0F;  // 127 * 256 + 127

  struct Block {
    float scale = 0;
    float scaled_sum = 0;          // scale * float(sum of all X)
    std::int32_t sum[2] = {0, 0};  // of X over 16 inputs each
  };

  /// Room for max_rows rows of max_k inputs; all zero.
  QuantizedRows(std::int64_t max_rows, std::int64_t max_k);

  /// What such buffers take. Bytes.
  static std::int64_t EstimateBytes(std::int64_t max_rows, std::int64_t max_k);

  /// Inputs [first_input, first_input + num_inputs) of rows [first_row, first_row + num_rows) from
  /// x [num_rows, num_inputs] with row stride ldx. first_input is a multiple of 32, and so is
  /// num_inputs unless the range ends the row. Threads may write distinct blocks at the same time.
  /// Every ISA gives the same numbers; AVX2 lays them out for itself (see values).
  void Quantize(const float* x,
                std::int64_t ldx,
                std::int64_t first_row,
                std::int64_t num_rows,
                std::int64_t first_input,
                std::int64_t num_inputs,
                Isa isa);

  std::int64_t max_k() const { return row_blocks_ * kBlockInputs; }
  /// From one row to the next, in Block and in bytes. An odd number of cache lines, so that the
  /// rows of a tile spread over the sets of a cache.
  std::int64_t row_blocks() const { return row_blocks_; }
  std::int64_t row_bytes() const { return (row_blocks_ | 1) * 2 * kBlockInputs; }
  /// [blocks][64 bytes]: 32 high bytes, then 32 low bytes. Of rows quantised for AVX2 instead 32
  /// 16-bit integers, each four inputs in the order 0 2 1 3: the pairs that a dword of four weight
  /// bytes gives when its even and its odd bytes are taken.
  const std::int8_t* values(std::int64_t row) const { return values_.get() + row * row_bytes(); }
  const Block* blocks(std::int64_t row) const { return blocks_.get() + row * row_blocks_; }

 private:
  struct Free {
    void operator()(void* p) const;
  };
  std::int64_t max_rows_;
  std::int64_t row_blocks_;
  std::unique_ptr<std::int8_t[], Free> values_;
  std::unique_ptr<Block[], Free> blocks_;
};

namespace internal {
/// One row of k inputs; the rest of the last block is zero.
void QuantizeRowScalar(const float* x,
                       std::int64_t k,
                       std::int8_t* values,
                       QuantizedRows::Block* blocks);
void QuantizeRowAvx2(const float* x,
                     std::int64_t k,
                     std::int8_t* values,
                     QuantizedRows::Block* blocks);
void QuantizeRowAvx512(const float* x,
                       std::int64_t k,
                       std::int8_t* values,
                       QuantizedRows::Block* blocks);
}  // namespace internal

}  // namespace holmes::kernels
