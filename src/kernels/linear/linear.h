/// Products of float32 rows with packed weights.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/linear/packed_matrix.h"
#include "kernels/linear/quantized_rows.h"
#include "kernels/team/team.h"

namespace holmes::kernels {

struct LinearOptions {
  const float* bias = nullptr;  // [n] or null
  bool accumulate = false;      // y += instead of y =
};

/// y[r][j] = sum_i x[r][i] w[j][i] (+ bias[j]) (+ y[r][j]).
/// Shapes: x [rows, k] with row stride ldx; y [rows, n] with row stride ldy; innermost stride 1.
/// Integer formats (IsInteger) read `quantized`, whose row r is x[r], the others `x`.
struct LinearJob {
  const PackedMatrix* w = nullptr;
  const float* x = nullptr;
  std::int64_t ldx = 0;
  const QuantizedRows* quantized = nullptr;
  std::int64_t rows = 0;
  float* y = nullptr;
  std::int64_t ldy = 0;
  LinearOptions options;
};

/// One member's part of the job, inside Team::Run: every member calls it, and a Barrier must follow
/// before anyone reads y or claims other work.
/// Order: one chain per output over the inputs in ascending order, so a row's result is the same
///        bits alone and in any batch, for any number of members, and at every ISA.
///        Float formats: acc = fma(w, x, acc) per input. Integer formats, per scale's inputs:
///        acc = fma(d scale, float(sum (u - zero) X), acc) with the sum exact, then per 32 inputs
///        with an offset acc = fma(m, scale float(sum X), acc).
/// Cost:  few rows stream the packed weights once, in shares fixed by the member's number, since
/// that
///        is limited by memory and each share is one ascending stream; more rows take pieces of
///        panels and rows as Team::Claim deals them.
void LinearInRegion(const LinearJob& job, Team& team, int member);

/// Panels [first, last) of the job, by the calling thread alone.
void LinearPanels(const LinearJob& job, std::int64_t first, std::int64_t last);

/// As LinearInRegion for several jobs, shared out together.
void LinearManyInRegion(std::span<const LinearJob> jobs, Team& team, int member);

/// The whole job with a region of its own; quantises x where the format needs it.
void Linear(const LinearJob& job, Team& team);

}  // namespace holmes::kernels
