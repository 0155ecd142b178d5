/// Per-ISA bodies behind rms_norm.h; not for other includers.
#pragma once

#include <cstdint>

namespace holmes::kernels::internal {

void RmsNormRowAvx2(const float* x, std::int64_t n, const float* weight, float eps, float* y);
void RmsNormRowAvx512(const float* x, std::int64_t n, const float* weight, float eps, float* y);

}  // namespace holmes::kernels::internal
