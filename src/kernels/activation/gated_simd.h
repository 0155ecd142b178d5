/// The body of gated.h for lanes V (simd/lanes.h).
#pragma once

#include <cstdint>

#include "kernels/simd/lanes.h"

namespace holmes::kernels::internal {

template <typename V>
typename V::Floats SiluMulLanes(typename V::Floats gate, typename V::Floats up) {
  using Floats = typename V::Floats;
  // Clamped so that exp stays finite: silu(-88) is 0 to float precision anyway.
  const Floats x = V::WhereNotBelow(gate, -87.0F, gate, V::Set1(-87.0F));
  const Floats e = Exp<V>(V::Sub(V::Zero(), x));
  return V::Mul(V::Div(x, V::Add(V::Set1(1.0F), e)), up);
}

template <typename V>
void SiluMulSimd(float* gate, const float* up, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    V::Store(gate + i, SiluMulLanes<V>(V::Load(gate + i), V::Load(up + i)));
  if (i < n) {
    const auto y = SiluMulLanes<V>(V::LoadFirst(gate + i, n - i), V::LoadFirst(up + i, n - i));
    V::StoreFirst(gate + i, n - i, y);
  }
}

}  // namespace holmes::kernels::internal
