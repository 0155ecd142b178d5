/// Runs a test at every SIMD level that this machine has.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cpu_features.h"

namespace holmes::kernels {

inline std::vector<Isa> AvailableIsas() {
  std::vector<Isa> out;
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
    if (isa <= BestIsa()) out.push_back(isa);
  }
  return out;
}

inline std::string IsaParamName(const testing::TestParamInfo<Isa>& info) {
  return std::string(NameOf(info.param));
}

}  // namespace holmes::kernels
