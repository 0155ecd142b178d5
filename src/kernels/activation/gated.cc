#include "kernels/activation/gated.h"

#include <cmath>

namespace holmes::kernels {

void SiluMul(float* gate, const float* up, std::int64_t n, Isa isa) {
  if (isa == Isa::kAvx2) return internal::SiluMulAvx2(gate, up, n);
  if (isa != Isa::kScalar) return internal::SiluMulAvx512(gate, up, n);
  for (std::int64_t i = 0; i < n; ++i) gate[i] = gate[i] / (1.0F + std::exp(-gate[i])) * up[i];
}

}  // namespace holmes::kernels
