/// Per-ISA bodies behind paged_attention.h; not for other includers.
#pragma once

#include "kernels/attention/paged_attention.h"

namespace holmes::kernels::internal {

/// Up to kTile queries that share one KV head.
struct QueryTile {
  static constexpr int kTile = 8;
  int count = 0;
  const float* q[kTile] = {};
  float* out[kTile] = {};
  int position[kTile] = {};
};

/// First position that a query at `position` sees.
inline int FirstVisible(int position, int window) {
  return window > 0 && position >= window ? position - window + 1 : 0;
}

using TileFunction = void (*)(const KvLayerView&,
                              const QueryTile&,
                              std::span<const BlockId>,
                              const AttentionShape&,
                              int kv_head);

void AttendTileAvx2(const KvLayerView& cache,
                    const QueryTile& tile,
                    std::span<const BlockId> blocks,
                    const AttentionShape& shape,
                    int kv_head);
void AttendTileAvx512(const KvLayerView& cache,
                      const QueryTile& tile,
                      std::span<const BlockId> blocks,
                      const AttentionShape& shape,
                      int kv_head);
/// The widest head that these two take, a multiple of 16.
inline constexpr int kMaxHeadDimSimd = 256;

}  // namespace holmes::kernels::internal
