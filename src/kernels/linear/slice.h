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
  float offset = 0;               // kNibbleF
  std::uint8_t u[32] = {};        // integer formats
  float value[32] = {};           // kF32
  std::uint16_t bits[32] = {};    // kF16, kBF16
  std::uint16_t half_scale = 0;   // kInt8, kNibble, kNibbleMinus8: as stored
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
    case PanelFormat::kNibbleMinus8:
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
    case PanelFormat::kNibbleMinus8:
      return PackedMatrix::kSliceInputs * PackedMatrix::kPanelRows / 2;
  }
  return 0;
}

/// What is subtracted from u.
constexpr int IntegerZero(PanelFormat format) {
  switch (format) {
    case PanelFormat::kInt8:
      return 128;
    case PanelFormat::kInt8x16:
      return 32;
    case PanelFormat::kNibbleMinus8:
      return 8;
    default:
      return 0;
  }
}

/// Formats with an offset m beside the scale d.
constexpr bool HasOffset(PanelFormat format) {
  return format == PanelFormat::kNibble || format == PanelFormat::kNibbleF;
}

/// Inputs that share a scale, in integer formats.
constexpr int ScaleInputs(PanelFormat format) { return format == PanelFormat::kInt8x16 ? 16 : 32; }

constexpr bool IsNibble(PanelFormat format) {
  return HasOffset(format) || format == PanelFormat::kNibbleMinus8;
}

/// The scales of one lane of an integer slice, as float32.
struct LaneScales {
  float scale[2];    // of 16 inputs each
  float offset = 0;  // 0 without one
};
LaneScales LoadScales(PanelFormat format, PanelSlice slice, int lane);

/// The lane's 32 unsigned integers.
void LoadIntegers(PanelFormat format, PanelSlice slice, int lane, std::uint8_t* u);

/// Writes one lane of a slice that was zero.
void StoreLane(PanelFormat format, const SliceValues& values, int lane, MutablePanelSlice slice);

/// The lane's 32 weights as every kernel computes them.
void LoadLane(PanelFormat format, PanelSlice slice, int lane, float* weights);

}  // namespace holmes::kernels
