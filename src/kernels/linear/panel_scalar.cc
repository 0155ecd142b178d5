#include <algorithm>
#include <cmath>

#include "kernels/linear/panel_kernels.h"
#include "kernels/linear/slice.h"

namespace holmes::kernels::internal {
namespace {

constexpr std::int64_t kLanes = PackedMatrix::kPanelRows;
constexpr std::int64_t kInputs = PackedMatrix::kSliceInputs;

/// Adds a slice's products to acc [num_rows] of one lane, in ascending order of inputs.
void AddSlice(const LinearJob& job,
              const float* weights,
              std::int64_t slice,
              std::int64_t row,
              std::int64_t num_rows,
              float* acc) {
  const std::int64_t count = std::min(kInputs, job.w->k() - slice * kInputs);
  for (std::int64_t r = 0; r < num_rows; ++r) {
    const float* x = job.x + (row + r) * job.ldx + slice * kInputs;
    for (std::int64_t i = 0; i < count; ++i) acc[r] = std::fma(weights[i], x[i], acc[r]);
  }
}

/// The same for an integer format: exact sums, then the scales.
void AddIntegerSlice(const LinearJob& job,
                     PanelSlice slice,
                     int lane,
                     std::int64_t index,
                     std::int64_t row,
                     std::int64_t num_rows,
                     float* acc) {
  const PanelFormat format = job.w->format();
  const LaneScales scales = LoadScales(format, slice, lane);
  std::uint8_t u[kInputs];
  LoadIntegers(format, slice, lane, u);
  const int inputs = ScaleInputs(format);
  for (std::int64_t r = 0; r < num_rows; ++r) {
    const std::int8_t* x = job.quantized->values(row + r) + index * 2 * kInputs;
    const QuantizedRows::Block& block = job.quantized->blocks(row + r)[index];
    for (int first = 0; first < kInputs; first += inputs) {
      std::int32_t total = 0;
      for (int i = first; i < first + inputs; ++i)
        total += (u[i] - IntegerZero(format)) * (256 * x[i] + x[kInputs + i]);
      acc[r] = std::fma(scales.scale[first / 16] * block.scale, static_cast<float>(total), acc[r]);
    }
    if (HasOffset(format)) acc[r] = std::fma(scales.offset, block.scaled_sum, acc[r]);
  }
}

void Store(const LinearJob& job, std::int64_t output, std::int64_t row, float acc) {
  float* y = job.y + row * job.ldy + output;
  if (job.options.bias != nullptr) acc += job.options.bias[output];
  *y = job.options.accumulate ? *y + acc : acc;
}

void Tile(const LinearJob& job,
          std::int64_t first,
          std::int64_t last,
          std::int64_t row,
          std::int64_t num_rows) {
  constexpr std::int64_t kPiece = 64;
  for (std::int64_t output = first * kLanes; output < std::min(last * kLanes, job.w->n());
       ++output) {
    for (std::int64_t at = 0; at < num_rows; at += kPiece) {
      const std::int64_t count = std::min(kPiece, num_rows - at);
      float acc[kPiece] = {};
      for (std::int64_t s = 0; s < job.w->num_slices(); ++s) {
        const PanelSlice slice = job.w->slice(output / kLanes, s);
        const int lane = static_cast<int>(output % kLanes);
        if (IsInteger(job.w->format())) {
          AddIntegerSlice(job, slice, lane, s, row + at, count, acc);
          continue;
        }
        float weights[kInputs];
        LoadLane(job.w->format(), slice, lane, weights);
        AddSlice(job, weights, s, row + at, count, acc);
      }
      for (std::int64_t r = 0; r < count; ++r) Store(job, output, row + at + r, acc[r]);
    }
  }
}

void Stream(const LinearJob& job, std::int64_t first, std::int64_t last) {
  Tile(job, first, last, 0, job.rows);
}

}  // namespace

const PanelKernels& ScalarKernels() {
  static constexpr PanelKernels kKernels{Stream, Tile, 8};
  return kKernels;
}

}  // namespace holmes::kernels::internal
