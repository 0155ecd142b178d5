/// Loops that are unrolled in the source: arrays of registers indexed by a variable anywhere would
/// lie in memory.
#pragma once

#include <utility>

namespace holmes::kernels::internal {

/// Calls body.operator()<i>() for i = 0 .. kCount - 1.
template <int kCount, typename Body>
inline __attribute__((always_inline)) void Unroll(Body&& body) {
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) __attribute__((always_inline)) {
    (body.template operator()<kIndex>(), ...);
  }
  (std::make_integer_sequence<int, kCount>());
}

}  // namespace holmes::kernels::internal
