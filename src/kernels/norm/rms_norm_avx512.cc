#include "kernels/norm/rms_norm_impl.h"
#include "kernels/norm/rms_norm_simd.h"

namespace holmes::kernels::internal {

void RmsNormRowAvx512(const float* x, std::int64_t n, const float* weight, float eps, float* y) {
  RmsNormRowSimd<Avx512Lanes>(x, n, weight, eps, y);
}

}  // namespace holmes::kernels::internal
