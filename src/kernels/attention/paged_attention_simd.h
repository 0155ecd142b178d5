/// Flash-like attention of up to eight queries with one KV head for lanes V (simd/lanes.h): spans
/// of 64 positions are scored, weighed by an online softmax and summed, each while its keys and
/// values lie in the first cache.
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/attention/paged_attention_impl.h"
#include "kernels/simd/lanes.h"

namespace holmes::kernels::internal {
inline constexpr int kBlock = KvLayerView::kBlockTokens;
inline constexpr int kTile = QueryTile::kTile;
/// Spans start at multiples of this many blocks, so that where a query's maximum is renewed does
/// not depend on its neighbours.
inline constexpr int kSpanBlocks = 4;
inline constexpr int kSpan = kSpanBlocks * kBlock;
inline constexpr float kNegInf = -std::numeric_limits<float>::infinity();

/// State of a tile while it walks the spans.
struct TileState {
  float max[kTile];
  float sum[kTile];
  float queries[kMaxHeadDimSimd * kTile];   // [head_dim][kTile]: broadcasts from fixed offsets
  alignas(64) float weights[kTile][kSpan];  // scores first
};

/// Where one span's blocks lie.
struct Span {
  const float* keys[kSpanBlocks];
  const float* values[kSpanBlocks];
  int num_blocks = 0;
};

/// Dot products of the tile's queries with the keys of kBlocks blocks: one chain over the head's
/// elements each.
template <typename V, int kQueries, int kBlocks>
void Scores(TileState& state, const Span& span, int block, int head_dim, typename V::Floats scale) {
  using Floats = typename V::Floats;
  Floats sum[kBlocks][kQueries];
  for (auto& of_block : sum) {
    for (Floats& s : of_block) s = V::Zero();
  }
  const float* keys[kBlocks];
  for (int b = 0; b < kBlocks; ++b) keys[b] = span.keys[block + b];
  const float* query = state.queries;
  for (int d = 0; d < head_dim; ++d, query += kTile) {
    Floats k[kBlocks];
    for (int b = 0; b < kBlocks; ++b) k[b] = V::Load(keys[b] + d * kBlock);
    for (int i = 0; i < kQueries; ++i) {
      const Floats q = V::Set1(query[i]);
      for (int b = 0; b < kBlocks; ++b) sum[b][i] = V::Fma(q, k[b], sum[b][i]);
    }
  }
  for (int b = 0; b < kBlocks; ++b) {
    for (int i = 0; i < kQueries; ++i)
      V::Store(state.weights[i] + (block + b) * kBlock, V::Mul(sum[b][i], scale));
  }
}

/// Turns the span's scores of query `i` into weights, those outside [from, to) of the span into 0,
/// and rescales what was summed before when the maximum moves.
template <typename V>
void Weigh(TileState& state, int i, int num_blocks, int from, int to, float* out, int dim) {
  using Floats = typename V::Floats;
  float* weights = state.weights[i];
  if (from >= to) {  // nothing of this span is seen: weights 0 leave the sums as they are
    for (int b = 0; b < num_blocks; ++b) V::Store(weights + b * kBlock, V::Zero());
    return;
  }
  const std::uint64_t seen = (to >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << to) - 1) &
                             ~((std::uint64_t{1} << from) - 1);
  Floats scores[kSpanBlocks];
  Floats high = V::Set1(kNegInf);
  for (int b = 0; b < num_blocks; ++b) {
    scores[b] = V::Where(static_cast<std::uint16_t>(seen >> (b * kBlock)),
                         V::Load(weights + b * kBlock),
                         V::Set1(kNegInf));
    high = V::Max(high, scores[b]);
  }
  const float max = std::max(state.max[i], V::ReduceMax(high));
  if (max > state.max[i]) {
    const Floats keep = Exp<V>(V::Set1(state.max[i] - max));
    for (int d = 0; d < dim; d += 16) V::Store(out + d, V::Mul(V::Load(out + d), keep));
    state.sum[i] *= V::First(keep);
    state.max[i] = max;
  }
  const Floats shift = V::Set1(max);
  Floats total = V::Zero();
  for (int b = 0; b < num_blocks; ++b) {
    const Floats weight = V::Where(static_cast<std::uint16_t>(seen >> (b * kBlock)),
                                   Exp<V>(V::Sub(scores[b], shift)),
                                   V::Zero());
    V::Store(weights + b * kBlock, weight);
    total = V::Add(total, weight);
  }
  state.sum[i] += V::ReduceAdd(total);
}

/// out[i] += weights[i] V for kChunks x 16 elements of the head from `d` on, over positions
/// [from, to) of the span in ascending order.
template <typename V, int kQueries, int kChunks>
void AddValues(const TileState& state,
               const Span& span,
               int from,
               int to,
               int d,
               std::int64_t head_dim,
               float* const* out) {
  using Floats = typename V::Floats;
  Floats sum[kChunks][kQueries];
  for (int c = 0; c < kChunks; ++c) {
    for (int i = 0; i < kQueries; ++i) sum[c][i] = V::Load(out[i] + d + c * 16);
  }
  for (int b = from / kBlock; b * kBlock < to; ++b) {
    const int end = std::min(to - b * kBlock, kBlock);
    for (int t = std::max(from - b * kBlock, 0); t < end; ++t) {
      Floats v[kChunks];
      for (int c = 0; c < kChunks; ++c) v[c] = V::Load(span.values[b] + t * head_dim + d + c * 16);
      for (int i = 0; i < kQueries; ++i) {
        const Floats weight = V::Set1(state.weights[i][b * kBlock + t]);
        for (int c = 0; c < kChunks; ++c) sum[c][i] = V::Fma(weight, v[c], sum[c][i]);
      }
    }
  }
  for (int c = 0; c < kChunks; ++c) {
    for (int i = 0; i < kQueries; ++i) V::Store(out[i] + d + c * 16, sum[c][i]);
  }
}

template <typename V, int kQueries>
void AttendTile(const KvLayerView& cache,
                const QueryTile& tile,
                std::span<const BlockId> blocks,
                const AttentionShape& shape,
                int kv_head) {
  using Floats = typename V::Floats;
  // 4 x 4 or 2 x 8 accumulators of 32 registers, and as many of 16 as fit.
  constexpr int kTogether = kQueries * 4 <= V::kAccumulators   ? 4
                            : kQueries * 2 <= V::kAccumulators ? 2
                                                               : 1;
  const int dim = cache.head_dim;
  const Floats scale = V::Set1(shape.scale);
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
      Scores<V, kQueries, kTogether>(state, span, block, dim, scale);
    for (; block < span.num_blocks; ++block) Scores<V, kQueries, 1>(state, span, block, dim, scale);
    int first = kSpan;
    int end = 0;
    for (int i = 0; i < kQueries; ++i) {
      const int from = std::clamp(FirstVisible(tile.position[i], shape.window) - start, 0, kSpan);
      const int to = std::clamp(tile.position[i] + 1 - start, 0, kSpan);
      Weigh<V>(state, i, span.num_blocks, from, to, tile.out[i], dim);
      if (from >= to) continue;
      first = std::min(first, from);
      end = std::max(end, to);
    }
    int d = 0;
    for (; d + kTogether * 16 <= dim; d += kTogether * 16)
      AddValues<V, kQueries, kTogether>(state, span, first, end, d, dim, tile.out);
    for (; d < dim; d += 16) AddValues<V, kQueries, 1>(state, span, first, end, d, dim, tile.out);
  }
  for (int i = 0; i < kQueries; ++i) {
    const Floats norm = V::Set1(1.0F / state.sum[i]);
    for (int d = 0; d < dim; d += 16) {
      V::Store(tile.out[i] + d, V::Mul(V::Load(tile.out[i] + d), norm));
    }
  }
}

template <typename V>
void AttendSimd(const KvLayerView& cache,
                const QueryTile& tile,
                std::span<const BlockId> blocks,
                const AttentionShape& shape,
                int kv_head) {
  static constexpr TileFunction kByCount[kTile] = {AttendTile<V, 1>,
                                                   AttendTile<V, 2>,
                                                   AttendTile<V, 3>,
                                                   AttendTile<V, 4>,
                                                   AttendTile<V, 5>,
                                                   AttendTile<V, 6>,
                                                   AttendTile<V, 7>,
                                                   AttendTile<V, 8>};
  // With few registers a whole tile's accumulators would lie in memory.
  constexpr int kMost = V::kAccumulators >= kTile ? kTile : 4;
  for (int first = 0; first < tile.count; first += kMost) {
    QueryTile part;
    part.count = std::min(kMost, tile.count - first);
    for (int i = 0; i < part.count; ++i) {
      part.q[i] = tile.q[first + i];
      part.out[i] = tile.out[first + i];
      part.position[i] = tile.position[first + i];
    }
    kByCount[part.count - 1](cache, part, blocks, shape, kv_head);
  }
}

}  // namespace holmes::kernels::internal
