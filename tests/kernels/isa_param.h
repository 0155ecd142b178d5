/// Runs a test at every SIMD level that this machine has.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cpu_features.h"

namespace holmes::kernels {

inline std::vector<Isa> AvailableIsas() {
  std::vector<Isa> out = {Isa::kScalar};
  if (BestIsa() == Isa::kAvx512) out.push_back(Isa::kAvx512);
  return out;
}

inline std::string IsaParamName(const testing::TestParamInfo<Isa>& info) {
  return info.param == Isa::kAvx512 ? "avx512" : "scalar";
}

}  // namespace holmes::kernels
