#include "kernels/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace holmes::kernels {
namespace {

constexpr Isa kLevels[] = {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx};

#if defined(__x86_64__)
/// Whether the CPU has tiles with 8-bit products and Linux lets this process use them
/// (Documentation/arch/x86/xstate.rst).
bool TakeTiles() {
  constexpr unsigned kTile = 1U << 24;
  constexpr unsigned kInt8 = 1U << 25;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((edx & kTile) == 0 || (edx & kInt8) == 0) return false;
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

}  // namespace

Isa BestIsa() {
#if defined(__x86_64__)
  static const Isa best = [] {
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vnni");
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("f16c");
    if (!avx2) return Isa::kScalar;
    if (!avx512) return Isa::kAvx2;
    return TakeTiles() ? Isa::kAmx : Isa::kAvx512;
  }();
  return best;
#else
  return Isa::kScalar;
#endif
}

std::string_view NameOf(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAmx:
      return "amx";
  }
  return "unknown";
}

std::optional<Isa> IsaByName(std::string_view name) {
  for (const Isa isa : kLevels) {
    if (NameOf(isa) == name) return isa;
  }
  return std::nullopt;
}

}  // namespace holmes::kernels
