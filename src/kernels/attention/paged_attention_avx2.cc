#include "kernels/attention/paged_attention_simd.h"

namespace holmes::kernels::internal {

void AttendTileAvx2(const KvLayerView& cache,
                    const QueryTile& tile,
                    std::span<const BlockId> blocks,
                    const AttentionShape& shape,
                    int kv_head) {
  AttendSimd<Avx2Lanes>(cache, tile, blocks, shape, kv_head);
}

}  // namespace holmes::kernels::internal
