/// Products of float32 rows with packed weights.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/linear/packed_matrix.h"
#include "kernels/team/team.h"

namespace holmes::kernels {

struct LinearOptions {
  const float* bias = nullptr;  // [n] or null
  bool accumulate = false;      // y += instead of y =
};

/// y[r][j] = sum_i x[r][i] w[j][i] (+ bias[j]) (+ y[r][j]).
/// Shapes: x [rows, k] with row stride ldx; y [rows, n] with row stride ldy; innermost stride 1.
struct LinearJob {
  const PackedMatrix* w = nullptr;
  const float* x = nullptr;
  std::int64_t ldx = 0;
  std::int64_t rows = 0;
  float* y = nullptr;
  std::int64_t ldy = 0;
  LinearOptions options;
};

/// One member's share of the job, inside Team::Run; a Barrier must follow before anyone reads y.
/// Order: w is dequantised to float32, then acc = fma(w, x, acc) over the inputs in ascending
/// order, one chain per output: a row's result is the same
///        bits alone and in any batch, for any number of members, and at every ISA.
/// Cost:  up to 8 rows stream the packed weights once; more rows dequantise 64 outputs x 128 inputs
/// at a time into the cache.
void LinearInRegion(const LinearJob& job, int member, int members);

/// As LinearInRegion for several jobs, shared out together.
void LinearManyInRegion(std::span<const LinearJob> jobs, int member, int members);

/// The whole job with a region of its own.
void Linear(const LinearJob& job, Team& team);

}  // namespace holmes::kernels
