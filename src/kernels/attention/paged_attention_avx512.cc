// Flash-like attention of up to eight queries with one KV head: spans of 64 positions are scored,
// weighed by an online softmax and summed, each while its keys and values lie in the first cache.
#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "kernels/attention/paged_attention_impl.h"
#include "kernels/simd/exp_avx512.h"

namespace holmes::kernels::internal {
namespace {

constexpr int kBlock = KvLayerView::kBlockTokens;
constexpr int kTile = QueryTile::kTile;
/// Spans start at multiples of this many blocks, so that where a query's maximum is renewed does
/// not depend on its neighbours.
constexpr int kSpanBlocks = 4;
constexpr int kSpan = kSpanBlocks * kBlock;
constexpr float kNegInf = -std::numeric_limits<float>::infinity();

/// State of a tile while it walks the spans.
struct TileState {
  float max[kTile];
  float sum[kTile];
  float queries[kMaxHeadDimAvx512 * kTile];  // [head_dim][kTile]: broadcasts from fixed offsets
  alignas(64) float weights[kTile][kSpan];   // scores first
};

/// Where one span's blocks lie.
struct Span {
  const float* keys[kSpanBlocks];
  const float* values[kSpanBlocks];
  int num_blocks = 0;
};

/// Dot products of the tile's queries with the keys of kBlocks blocks: one chain over the head's
/// elements each.
template <int kQueries, int kBlocks>
inline void Scores(TileState& state, const Span& span, int block, int head_dim, __m512 scale) {
  __m512 sum[kBlocks][kQueries];
  for (auto& of_block : sum) {
    for (__m512& s : of_block) s = _mm512_setzero_ps();
  }
  const float* keys[kBlocks];
  for (int b = 0; b < kBlocks; ++b) keys[b] = span.keys[block + b];
  const float* query = state.queries;
  for (int d = 0; d < head_dim; ++d, query += kTile) {
    __m512 k[kBlocks];
    for (int b = 0; b < kBlocks; ++b) k[b] = _mm512_loadu_ps(keys[b] + d * kBlock);
    for (int i = 0; i < kQueries; ++i) {
      const __m512 q = _mm512_set1_ps(query[i]);
      for (int b = 0; b < kBlocks; ++b) sum[b][i] = _mm512_fmadd_ps(q, k[b], sum[b][i]);
    }
  }
  for (int b = 0; b < kBlocks; ++b) {
    for (int i = 0; i < kQueries; ++i)
      _mm512_store_ps(state.weights[i] + (block + b) * kBlock, _mm512_mul_ps(sum[b][i], scale));
  }
}

/// Turns the span's scores of query `i` into weights, those outside [from, to) of the span into 0,
/// and rescales what was summed before when the maximum moves.
inline void Weigh(TileState& state, int i, int num_blocks, int from, int to, float* out, int dim) {
  float* weights = state.weights[i];
  if (from >= to) {  // nothing of this span is seen: weights 0 leave the sums as they are
    for (int b = 0; b < num_blocks; ++b) _mm512_store_ps(weights + b * kBlock, _mm512_setzero_ps());
    return;
  }
  const std::uint64_t seen = (to >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << to) - 1) &
                             ~((std::uint64_t{1} << from) - 1);
  __m512 scores[kSpanBlocks];
  __m512 high = _mm512_set1_ps(kNegInf);
  for (int b = 0; b < num_blocks; ++b) {
    scores[b] = _mm512_mask_mov_ps(_mm512_set1_ps(kNegInf),
                                   static_cast<__mmask16>(seen >> (b * kBlock)),
                                   _mm512_load_ps(weights + b * kBlock));
    high = _mm512_max_ps(high, scores[b]);
  }
  const float max = std::max(state.max[i], _mm512_reduce_max_ps(high));
  if (max > state.max[i]) {
    const __m512 keep = Exp16(_mm512_set1_ps(state.max[i] - max));
    for (int d = 0; d < dim; d += 16)
      _mm512_storeu_ps(out + d, _mm512_mul_ps(_mm512_loadu_ps(out + d), keep));
    state.sum[i] *= _mm512_cvtss_f32(keep);
    state.max[i] = max;
  }
  const __m512 shift = _mm512_set1_ps(max);
  __m512 total = _mm512_setzero_ps();
  for (int b = 0; b < num_blocks; ++b) {
    const __m512 weight = _mm512_maskz_mov_ps(static_cast<__mmask16>(seen >> (b * kBlock)),
                                              Exp16(_mm512_sub_ps(scores[b], shift)));
    _mm512_store_ps(weights + b * kBlock, weight);
    total = _mm512_add_ps(total, weight);
  }
  state.sum[i] += _mm512_reduce_add_ps(total);
}

/// out[i] += weights[i] V for kChunks x 16 elements of the head from `d` on, over positions
/// [from, to) of the span in ascending order.
template <int kQueries, int kChunks>
inline void AddValues(const TileState& state,
                      const Span& span,
                      int from,
                      int to,
                      int d,
                      std::int64_t head_dim,
                      float* const* out) {
  __m512 sum[kChunks][kQueries];
  for (int c = 0; c < kChunks; ++c) {
    for (int i = 0; i < kQueries; ++i) sum[c][i] = _mm512_loadu_ps(out[i] + d + c * 16);
  }
  for (int b = from / kBlock; b * kBlock < to; ++b) {
    const int end = std::min(to - b * kBlock, kBlock);
    for (int t = std::max(from - b * kBlock, 0); t < end; ++t) {
      __m512 v[kChunks];
      for (int c = 0; c < kChunks; ++c)
        v[c] = _mm512_loadu_ps(span.values[b] + t * head_dim + d + c * 16);
      for (int i = 0; i < kQueries; ++i) {
        const __m512 weight = _mm512_set1_ps(state.weights[i][b * kBlock + t]);
        for (int c = 0; c < kChunks; ++c) sum[c][i] = _mm512_fmadd_ps(weight, v[c], sum[c][i]);
      }
    }
  }
  for (int c = 0; c < kChunks; ++c) {
    for (int i = 0; i < kQueries; ++i) _mm512_storeu_ps(out[i] + d + c * 16, sum[c][i]);
  }
}

template <int kQueries>
void AttendTile(const KvLayerView& cache,
                const QueryTile& tile,
                std::span<const BlockId> blocks,
                const AttentionShape& shape,
                int kv_head) {
  // 4 x 4 or 2 x 8 accumulators.
  constexpr int kTogether = kQueries <= 4 ? 4 : 2;
  const int dim = cache.head_dim;
  const __m512 scale = _mm512_set1_ps(shape.scale);
  TileState state;
  int first_position = std::numeric_limits<int>::max();
  int last_position = 0;
  for (int i = 0; i < kQueries; ++i) {
    state.max[i] = kNegInf;
    state.sum[i] = 0.0F;
    std::fill_n(tile.out[i], dim, 0.0F);
    for (int d = 0; d < dim; ++d) state.queries[d * kTile + i] = tile.q[i][d];
    first_position = std::min(first_position, FirstVisible(tile.position[i], shape.window));
    last_position = std::max(last_position, tile.position[i]);
  }
  const std::int64_t head = static_cast<std::int64_t>(kv_head) * dim * kBlock;
  for (int start = first_position / kSpan * kSpan; start <= last_position; start += kSpan) {
    Span span;
    // Blocks before the first one that anybody sees may be gone.
    const int first_block = std::max(first_position - start, 0) / kBlock;
    span.num_blocks = std::min(kSpanBlocks, last_position / kBlock + 1 - start / kBlock);
    for (int b = first_block; b < span.num_blocks; ++b) {
      const BlockId id = blocks[static_cast<std::size_t>(start / kBlock + b)];
      const std::int64_t base = id.value * cache.block_elements() + head;
      span.keys[b] = cache.keys + base;
      span.values[b] = cache.values + base;
    }
    int block = first_block;
    for (; block + kTogether <= span.num_blocks; block += kTogether)
      Scores<kQueries, kTogether>(state, span, block, dim, scale);
    for (; block < span.num_blocks; ++block) Scores<kQueries, 1>(state, span, block, dim, scale);
    int first = kSpan;
    int end = 0;
    for (int i = 0; i < kQueries; ++i) {
      const int from = std::clamp(FirstVisible(tile.position[i], shape.window) - start, 0, kSpan);
      const int to = std::clamp(tile.position[i] + 1 - start, 0, kSpan);
      Weigh(state, i, span.num_blocks, from, to, tile.out[i], dim);
      if (from >= to) continue;
      first = std::min(first, from);
      end = std::max(end, to);
    }
    int d = 0;
    for (; d + kTogether * 16 <= dim; d += kTogether * 16)
      AddValues<kQueries, kTogether>(state, span, first, end, d, dim, tile.out);
    for (; d < dim; d += 16) AddValues<kQueries, 1>(state, span, first, end, d, dim, tile.out);
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
