#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "kernels/attention/paged_attention_impl.h"
#include "kernels/simd/exp_avx512.h"

namespace holmes::kernels::internal {
namespace {

constexpr int kBlock = KvLayerView::kBlockTokens;
constexpr int kTile = QueryTile::kTile;

/// State of a tile while it walks the blocks. Weights are kept per query so that the value pass can
/// broadcast them.
struct TileState {
  float max[kTile];
  float sum[kTile];
  alignas(64) float weights[kTile][kBlock];
};

/// Dot products of kQueries queries with the 16 keys of a block. Two chains over the head's halves
/// hide the FMA latency; their order is fixed.
template <int kQueries>
inline void Scores(const float* const* q, const float* keys, int head_dim, __m512* out) {
  __m512 low[kQueries];
  __m512 high[kQueries];
  for (int i = 0; i < kQueries; ++i) low[i] = high[i] = _mm512_setzero_ps();
  const int half = head_dim / 2;
  for (int d = 0; d < half; ++d) {
    const __m512 k_low = _mm512_loadu_ps(keys + d * kBlock);
    const __m512 k_high = _mm512_loadu_ps(keys + (half + d) * kBlock);
    for (int i = 0; i < kQueries; ++i) {
      low[i] = _mm512_fmadd_ps(_mm512_set1_ps(q[i][d]), k_low, low[i]);
      high[i] = _mm512_fmadd_ps(_mm512_set1_ps(q[i][half + d]), k_high, high[i]);
    }
  }
  for (int i = 0; i < kQueries; ++i) out[i] = _mm512_add_ps(low[i], high[i]);
}

/// Turns a block's scores of query `i` into weights and rescales what was summed before, when the
/// maximum moved.
inline void Accept(
    TileState& state, int i, __m512 scores, __mmask16 visible, float* out, int head_dim) {
  scores =
      _mm512_mask_mov_ps(_mm512_set1_ps(-std::numeric_limits<float>::infinity()), visible, scores);
  const float max = std::max(state.max[i], _mm512_reduce_max_ps(scores));
  if (max > state.max[i]) {
    const __m512 keep = Exp16(_mm512_set1_ps(state.max[i] - max));
    for (int d = 0; d < head_dim; d += 16)
      _mm512_storeu_ps(out + d, _mm512_mul_ps(_mm512_loadu_ps(out + d), keep));
    state.sum[i] *= _mm512_cvtss_f32(keep);
    state.max[i] = max;
  }
  const __m512 weights = Exp16(_mm512_sub_ps(scores, _mm512_set1_ps(max)));
  const __m512 seen = _mm512_maskz_mov_ps(visible, weights);
  _mm512_store_ps(state.weights[i], seen);
  state.sum[i] += _mm512_reduce_add_ps(seen);
}

/// out[i] += weights[i] V over the block's first `num_tokens` positions.
template <int kQueries>
inline void AddValues(const TileState& state,
                      const float* values,
                      int first,
                      int num_tokens,
                      int head_dim,
                      float* const* out) {
  for (int d = 0; d < head_dim; d += 16) {
    __m512 sum[kQueries];
    for (int i = 0; i < kQueries; ++i) sum[i] = _mm512_loadu_ps(out[i] + d);
    for (int t = first; t < num_tokens; ++t) {
      const __m512 v = _mm512_loadu_ps(values + static_cast<std::int64_t>(t) * head_dim + d);
      for (int i = 0; i < kQueries; ++i)
        sum[i] = _mm512_fmadd_ps(_mm512_set1_ps(state.weights[i][t]), v, sum[i]);
    }
    for (int i = 0; i < kQueries; ++i) _mm512_storeu_ps(out[i] + d, sum[i]);
  }
}

template <int kQueries>
void AttendTile(const KvLayerView& cache,
                const QueryTile& tile,
                std::span<const BlockId> blocks,
                const AttentionShape& shape,
                int kv_head) {
  const int dim = cache.head_dim;
  const __m512 scale = _mm512_set1_ps(shape.scale);
  TileState state;
  int first_block = std::numeric_limits<int>::max();
  int last_position = 0;
  for (int i = 0; i < kQueries; ++i) {
    state.max[i] = -std::numeric_limits<float>::infinity();
    state.sum[i] = 0.0F;
    std::fill_n(tile.out[i], dim, 0.0F);
    first_block = std::min(first_block, FirstVisible(tile.position[i], shape.window) / kBlock);
    last_position = std::max(last_position, tile.position[i]);
  }
  for (int b = first_block; b <= last_position / kBlock; ++b) {
    const std::int64_t base = blocks[static_cast<std::size_t>(b)].value * cache.block_elements() +
                              static_cast<std::int64_t>(kv_head) * dim * kBlock;
    __m512 scores[kQueries];
    Scores<kQueries>(tile.q, cache.keys + base, dim, scores);
    int first = kBlock;
    int end = 0;
    for (int i = 0; i < kQueries; ++i) {
      const int from =
          std::clamp(FirstVisible(tile.position[i], shape.window) - b * kBlock, 0, kBlock);
      const int to = std::clamp(tile.position[i] + 1 - b * kBlock, 0, kBlock);
      const unsigned visible = from < to ? ((1U << to) - 1U) & ~((1U << from) - 1U) : 0U;
      if (visible == 0) {  // weights 0 leave this query's sums as they are
        _mm512_store_ps(state.weights[i], _mm512_setzero_ps());
        continue;
      }
      first = std::min(first, from);
      end = std::max(end, to);
      Accept(state,
             i,
             _mm512_mul_ps(scores[i], scale),
             static_cast<__mmask16>(visible),
             tile.out[i],
             dim);
    }
    AddValues<kQueries>(state, cache.values + base, first, end, dim, tile.out);
  }
  for (int i = 0; i < kQueries; ++i) {
    const __m512 norm = _mm512_set1_ps(1.0F / state.sum[i]);
    for (int d = 0; d < dim; d += 16) {
      _mm512_storeu_ps(tile.out[i] + d, _mm512_mul_ps(_mm512_loadu_ps(tile.out[i] + d), norm));
    }
  }
}

}  // namespace

void AttendTileAvx512(const KvLayerView& cache,
                      const QueryTile& tile,
                      std::span<const BlockId> blocks,
                      const AttentionShape& shape,
                      int kv_head) {
  static constexpr TileFunction kByCount[kTile] = {AttendTile<1>,
                                                   AttendTile<2>,
                                                   AttendTile<3>,
                                                   AttendTile<4>,
                                                   AttendTile<5>,
                                                   AttendTile<6>,
                                                   AttendTile<7>,
                                                   AttendTile<8>};
  kByCount[tile.count - 1](cache, tile, blocks, shape, kv_head);
}

}  // namespace holmes::kernels::internal
