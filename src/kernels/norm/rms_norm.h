/// Root mean square normalisation of rows.
#pragma once

#include <cstdint>

#include "kernels/cpu_features.h"

namespace holmes::kernels {

/// y[r][i] = x[r][i] / sqrt(mean_i(x[r][i]^2) + eps) * weight[i].
/// Shapes: x, y [rows, n] with row strides ldx, ldy in elements; weight [n]. x may be y.
/// Cost:   two passes over a row that stays in L1; a row's arithmetic does not depend on its
/// neighbours. Source: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization".
void RmsNorm(const float* x,
             std::int64_t ldx,
             std::int64_t rows,
             std::int64_t n,
             const float* weight,
             float eps,
             float* y,
             std::int64_t ldy,
             Isa isa);

}  // namespace holmes::kernels
