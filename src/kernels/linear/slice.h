/// The layout of a panel's slice (16 outputs x 32 inputs), lane by lane: what packing writes and
/// the scalar kernels read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/linear/packed_matrix.h"

namespace holmes::kernels {

/// 32 consecutive inputs of one stored row, still quantised. Which members count depends on the
/// panel format.
struct SliceValues {
  float scale[2] = {};            // of 16 inputs each (kInt8x16); the first one of all 32 elsewhere
  float offset = 0;               // kNibble, kNibbleF
  std::int8_t q[32] = {};         // integer formats
  float value[32] = {};           // kF32
  std::uint16_t bits[32] = {};    // kF16, kBF16
  std::uint16_t half_scale = 0;   // kInt8, kNibble: as stored
  std::uint16_t half_offset = 0;  // kNibble: as stored
};

struct MutablePanelSlice {
  std::byte* head = nullptr;
  std::byte* body = nullptr;
};

/// Of one panel and slice.
constexpr std::int64_t HeadBytes(PanelFormat format) {
  switch (format) {
    case PanelFormat::kF32:
    case PanelFormat::kF16:
    case PanelFormat::kBF16:
      return 0;
    case PanelFormat::kInt8:
      return PackedMatrix::kPanelRows * 2;
    case PanelFormat::kNibble:
      return 2 * PackedMatrix::kPanelRows * 2;
    case PanelFormat::kInt8x16:
    case PanelFormat::kNibbleF:
      return 2 * PackedMatrix::kPanelRows * 4;
  }
  return 0;
}

constexpr std::int64_t BodyBytes(PanelFormat format) {
  switch (format) {
    case PanelFormat::kF32:
      return PackedMatrix::kSliceInputs * PackedMatrix::kPanelRows * 4;
    case PanelFormat::kF16:
    case PanelFormat::kBF16:
      return PackedMatrix::kSliceInputs * PackedMatrix::kPanelRows * 2;
    case PanelFormat::kInt8:
    case PanelFormat::kInt8x16:
      return PackedMatrix::kSliceInputs * PackedMatrix::kPanelRows;
    case PanelFormat::kNibble:
    case PanelFormat::kNibbleF:
      return PackedMatrix::kSliceInputs * PackedMatrix::kPanelRows / 2;
  }
  return 0;
}

/// Writes one lane of a slice that was zero.
void StoreLane(PanelFormat format, const SliceValues& values, int lane, MutablePanelSlice slice);

/// The lane's 32 weights as every kernel computes them.
void LoadLane(PanelFormat format, PanelSlice slice, int lane, float* weights);

}  // namespace holmes::kernels
