#include "kernels/norm/rms_norm.h"

#include <cmath>

#include "kernels/norm/rms_norm_impl.h"

namespace holmes::kernels {
namespace {

void RmsNormRowScalar(const float* x, std::int64_t n, const float* weight, float eps, float* y) {
  float sum = 0.0F;
  for (std::int64_t i = 0; i < n; ++i) sum += x[i] * x[i];
  const float scale = 1.0F / std::sqrt(sum / static_cast<float>(n) + eps);
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * scale * weight[i];
}

}  // namespace

void RmsNorm(const float* x,
             std::int64_t ldx,
             std::int64_t rows,
             std::int64_t n,
             const float* weight,
             float eps,
             float* y,
             std::int64_t ldy,
             Isa isa) {
  const auto row = isa == Isa::kScalar   ? RmsNormRowScalar
                   : isa >= Isa::kAvx512 ? internal::RmsNormRowAvx512
                                         : internal::RmsNormRowAvx2;
  for (std::int64_t r = 0; r < rows; ++r) row(x + r * ldx, n, weight, eps, y + r * ldy);
}

}  // namespace holmes::kernels
