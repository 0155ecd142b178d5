/// Per-ISA bodies behind linear.h; not for other includers.
#pragma once

#include <cstdint>

#include "kernels/linear/linear.h"

namespace holmes::kernels::internal {

/// Panels that the kernels take together.
inline constexpr int kGroupPanels = PackedMatrix::kGroupPanels;
inline constexpr int kGroupRows = kGroupPanels * PackedMatrix::kPanelRows;

struct PanelKernels {
  /// All rows of panels [first, last); at most `max_stream_rows` of them.
  void (*stream)(const LinearJob& job, std::int64_t first, std::int64_t last);
  /// Rows [row, row + num_rows) of panels [first, last), at most kGroupPanels.
  void (*tile)(const LinearJob& job,
               std::int64_t first,
               std::int64_t last,
               std::int64_t row,
               std::int64_t num_rows);
  /// Up to this many rows a whole job is cut by panels alone.
  std::int64_t max_stream_rows;
};

/// All formats.
const PanelKernels& ScalarKernels();
/// All formats.
const PanelKernels& Avx2Kernels();
/// Float formats.
const PanelKernels& Avx512Kernels();
/// Integer formats.
const PanelKernels& VnniKernels();
/// Integer formats; few rows as VnniKernels.
const PanelKernels& AmxKernels();

}  // namespace holmes::kernels::internal
