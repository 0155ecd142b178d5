/// The body of rms_norm.h for lanes V (simd/lanes.h).
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/simd/lanes.h"

namespace holmes::kernels::internal {

template <typename V>
void RmsNormRowSimd(const float* x, std::int64_t n, const float* weight, float eps, float* y) {
  using Floats = typename V::Floats;
  const std::int64_t whole = n / 16 * 16;
  const std::int64_t rest = n - whole;
  Floats sum = V::Zero();
  for (std::int64_t i = 0; i < whole; i += 16) {
    const Floats v = V::Load(x + i);
    sum = V::Fma(v, v, sum);
  }
  if (rest > 0) {
    const Floats v = V::LoadFirst(x + whole, rest);
    sum = V::Fma(v, v, sum);
  }
  const float mean = V::ReduceAdd(sum) / static_cast<float>(n);
  const Floats scale = V::Set1(1.0F / std::sqrt(mean + eps));
  for (std::int64_t i = 0; i < whole; i += 16)
    V::Store(y + i, V::Mul(V::Mul(V::Load(x + i), scale), V::Load(weight + i)));
  if (rest > 0) {
    const Floats v = V::Mul(V::LoadFirst(x + whole, rest), scale);
    V::StoreFirst(y + whole, rest, V::Mul(v, V::LoadFirst(weight + whole, rest)));
  }
}

}  // namespace holmes::kernels::internal
