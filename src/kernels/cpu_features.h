/// Which SIMD level the kernels may use, chosen at run time.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace holmes::kernels {

/// Ascending: each level includes the ones before it.
enum class Isa : std::uint8_t {
  kScalar,
  kAvx2,    // AVX2, FMA and F16C
  kAvx512,  // F, BW, VL, DQ and VNNI
  kAmx,     // TILE and INT8
};

/// The best level of this CPU and operating system. The first call asks the operating system for
/// the use of AMX's tiles, which it grants to the whole process.
Isa BestIsa();

/// "scalar", "avx2", "avx512", "amx".
std::string_view NameOf(Isa isa);
/// Nothing for another name.
std::optional<Isa> IsaByName(std::string_view name);

}  // namespace holmes::kernels
