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
        float weights[kInputs];
        LoadLane(job.w->format(),
                 job.w->slice(output / kLanes, s),
                 static_cast<int>(output % kLanes),
                 weights);
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
  static constexpr PanelKernels kKernels{Stream, Tile};
  return kKernels;
}

}  // namespace holmes::kernels::internal
