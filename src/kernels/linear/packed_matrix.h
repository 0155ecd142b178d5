/// A weight matrix in the layout that the CPU's kernels read: panels of 16 output rows, one row per
/// SIMD lane; four panels interleaved along the inputs into one group, so that the kernels read
/// memory in one ascending stream.
#pragma once

#include <algorithm>
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

/// How 32 consecutive inputs of a panel are stored ("slice"): a head of scales and a body of
/// values; docs/kernels-cpu.md draws each. Integers are unsigned bytes u, or nibbles of bytes, four
/// inputs to a dword of one output.
enum class PanelFormat : std::uint8_t {
  kF32,           // body [32][16] float
  kF16,           // body [32][16] half
  kBF16,          // body [32][16] bfloat16
  kInt8,          // head d [16] half; body [8][16] dwords: w = d (u - 128)
  kInt8x16,       // head d [2][16] float, of 16 inputs each; body as kInt8: w = d (u - 32)
  kNibble,        // head d [16] half, m [16] half; body [4][16] dwords: w = d u + m
  kNibbleF,       // as kNibble with float d and m (formats whose scales are products)
  kNibbleMinus8,  // head d [16] half; body as kNibble: w = d (u - 8)
};

/// Whether activations are multiplied as integers (quantized_rows.h) rather than as float32.
constexpr bool IsInteger(PanelFormat format) { return format >= PanelFormat::kInt8; }

/// Where one slice of one panel lies.
struct PanelSlice {
  const std::byte* head = nullptr;
  const std::byte* body = nullptr;
};

/// Read-only after Pack, position independent, 64-byte aligned, about the size of the stored
/// tensor. Rows and inputs are padded with zeros to whole panels and slices.
class PackedMatrix {
 public:
  static constexpr int kPanelRows = 16;
  static constexpr int kSliceInputs = 32;
  static constexpr int kGroupPanels = 4;
  /// Changes when a layout does: a stored image with another id is packed anew.
  static constexpr std::uint32_t kPackingId = 3;

  PackedMatrix() = default;

  /// Types: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, Q6_K. The weight's exact values are kept.
  /// Errors: kUnimplemented for another type; kInvalidArgument when bytes and shape disagree.
  static StatusOr<PackedMatrix> Pack(const WeightView& view, Isa isa, Team* team);

  /// What Pack would take. Bytes; errors as those of Pack.
  static StatusOr<std::int64_t> PackedBytes(const WeightView& view);

  std::int64_t n() const { return n_; }
  std::int64_t k() const { return k_; }
  Isa isa() const { return isa_; }
  PanelFormat format() const { return format_; }
  std::int64_t num_panels() const { return (n_ + kPanelRows - 1) / kPanelRows; }
  std::int64_t num_slices() const { return (k_ + kSliceInputs - 1) / kSliceInputs; }
  std::int64_t bytes() const { return num_panels() * num_slices() * (head_bytes_ + body_bytes_); }
  /// Panels of the group that `panel` belongs to: kGroupPanels except in the last group.
  std::int64_t group_panels(std::int64_t panel) const {
    return std::min<std::int64_t>(kGroupPanels, num_panels() - panel / kGroupPanels * kGroupPanels);
  }
  /// From one slice of a panel to the next, for head and body alike.
  std::int64_t slice_stride(std::int64_t panel) const {
    return group_panels(panel) * (head_bytes_ + body_bytes_);
  }
  /// Slice `s` of a group is the heads of its panels, then their bodies.
  PanelSlice slice(std::int64_t panel, std::int64_t s) const {
    const std::int64_t first = panel / kGroupPanels * kGroupPanels;
    const std::byte* at =
        data_.get() + first * num_slices() * (head_bytes_ + body_bytes_) + s * slice_stride(panel);
    return {at + (panel - first) * head_bytes_,
            at + group_panels(panel) * head_bytes_ + (panel - first) * body_bytes_};
  }

  /// The weights of one output row, [k] floats: for embeddings.
  void DequantizeRow(std::int64_t row, float* out) const;

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  /// Everything but the data.
  static StatusOr<PackedMatrix> Layout(const WeightView& view, Isa isa);
  std::int64_t allocated_bytes() const;
  void PackPanel(const WeightView& view, std::int64_t panel);

  std::int64_t n_ = 0;
  std::int64_t k_ = 0;
  std::int64_t head_bytes_ = 0;  // of one panel and slice
  std::int64_t body_bytes_ = 0;
  PanelFormat format_ = PanelFormat::kF32;
  Isa isa_ = Isa::kScalar;
  std::unique_ptr<std::byte[], Free> data_;
};

}  // namespace holmes::kernels
