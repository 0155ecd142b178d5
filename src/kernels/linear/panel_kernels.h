/// Per-ISA bodies behind linear.h; not for other includers.
#pragma once

#include <cstdint>

#include "kernels/linear/linear.h"

namespace holmes::kernels::internal {

/// Panels that the kernels take together.
inline constexpr int kGroupPanels = PackedMatrix::kGroupPanels;
inline constexpr int kGroupRows = kGroupPanels * PackedMatrix::kPanelRows;
/// Up to this many rows the weights are dequantised in registers; above, a piece of them is
/// dequantised once into the cache.
inline constexpr int kStreamRows = 8;

struct PanelKernels {
  /// All rows (at most kStreamRows) of panels [first, last).
  void (*stream)(const LinearJob& job, std::int64_t first, std::int64_t last);
  /// Rows [row, row + num_rows) of panels [first, last), at most kGroupPanels.
  void (*tile)(const LinearJob& job,
               std::int64_t first,
               std::int64_t last,
               std::int64_t row,
               std::int64_t num_rows);
};

const PanelKernels& ScalarKernels();
const PanelKernels& Avx512Kernels();

}  // namespace holmes::kernels::internal
