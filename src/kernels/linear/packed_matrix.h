/// A weight matrix in the layout that the CPU's kernels read: panels of 16 output rows, one row per SIMD lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "kernels/cpu_features.h"
#include "kernels/team/team.h"
#include "tensor/block_type.h"

namespace holmes::kernels {

/// A stored weight [n outputs, k inputs]; blocks run along k.
struct WeightView {
  tensor::BlockType type = tensor::BlockType::kF32;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::span<const std::byte> bytes;
};

/// How 32 consecutive inputs of a panel are stored ("slice"); docs/kernels-cpu.md draws each.
enum class PanelFormat : std::uint8_t {
  kF32,      // [32][16] float
  kF16,      // [32][16] half
  kBF16,     // [32][16] bfloat16
  kInt8,     // d [16] half, then [32][16] int8: w = d q
  kInt8x16,  // d [2][16] half-precision scales of 16 inputs each, as float: [2][16] float, then [32][16] int8
  kNibble,   // d [16] half, m [16] half, then [4][16] dwords of eight 4-bit q each: w = d q + m
  kNibbleF,  // as kNibble with float d and m (formats whose scales are products)
};

/// Read-only after Pack, position independent, 64-byte aligned, about the size of the stored tensor. Rows and inputs are padded with zeros to whole
/// panels and slices.
class PackedMatrix {
 public:
  static constexpr int kPanelRows = 16;
  static constexpr int kSliceInputs = 32;
  /// Changes when a layout does: a stored image with another id is packed anew.
  static constexpr std::uint32_t kPackingId = 1;

  PackedMatrix() = default;

  /// Types: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, Q6_K. The weight's exact values are kept.
  /// Errors: kUnimplemented for another type; kInvalidArgument when bytes and shape disagree.
  static StatusOr<PackedMatrix> Pack(const WeightView& view, Isa isa, Team* team);

  std::int64_t n() const { return n_; }
  std::int64_t k() const { return k_; }
  Isa isa() const { return isa_; }
  PanelFormat format() const { return format_; }
  std::int64_t num_panels() const { return (n_ + kPanelRows - 1) / kPanelRows; }
  std::int64_t num_slices() const { return (k_ + kSliceInputs - 1) / kSliceInputs; }
  std::int64_t slice_bytes() const { return slice_bytes_; }
  std::int64_t panel_bytes() const { return num_slices() * slice_bytes_; }
  std::int64_t bytes() const { return num_panels() * panel_bytes(); }
  const std::byte* panel(std::int64_t p) const { return data_.get() + p * panel_bytes(); }

  /// The weights of one output row, [k] floats: for embeddings.
  void DequantizeRow(std::int64_t row, float* out) const;

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::int64_t n_ = 0;
  std::int64_t k_ = 0;
  std::int64_t slice_bytes_ = 0;
  PanelFormat format_ = PanelFormat::kF32;
  Isa isa_ = Isa::kScalar;
  std::unique_ptr<std::byte[], Free> data_;
};

}  // namespace holmes::kernels
