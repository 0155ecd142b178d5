#include "kernels/cpu_features.h"

namespace holmes::kernels {

Isa BestIsa() {
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return avx512 ? Isa::kAvx512 : Isa::kScalar;
}

}  // namespace holmes::kernels
