#include "kernels/activation/gated.h"
#include "kernels/activation/gated_simd.h"

namespace holmes::kernels::internal {

void SiluMulAvx2(float* gate, const float* up, std::int64_t n) {
  SiluMulSimd<Avx2Lanes>(gate, up, n);
}

}  // namespace holmes::kernels::internal
