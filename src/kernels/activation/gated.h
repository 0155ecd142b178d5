/// Gated activations of feed-forward layers.
#pragma once

#include <cstdint>

#include "kernels/cpu_features.h"

namespace holmes::kernels {

/// gate[i] = silu(gate[i]) * up[i] for n elements, silu(x) = x / (1 + exp(-x)).
/// Source: Shazeer 2020, "GLU Variants Improve Transformer" (SwiGLU).
void SiluMul(float* gate, const float* up, std::int64_t n, Isa isa);

namespace internal {
void SiluMulAvx2(float* gate, const float* up, std::int64_t n);
void SiluMulAvx512(float* gate, const float* up, std::int64_t n);
}  // namespace internal

}  // namespace holmes::kernels
