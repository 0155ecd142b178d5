/// Which SIMD level the kernels may use, chosen at run time.
#pragma once

#include <cstdint>

namespace holmes::kernels {

enum class Isa : std::uint8_t { kScalar, kAvx512 };

/// The best level of this CPU and operating system.
Isa BestIsa();

}  // namespace holmes::kernels
