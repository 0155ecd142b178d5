#include "kernels/attention/paged_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels/attention/paged_attention_impl.h"

namespace holmes::kernels {
namespace {

constexpr int kBlock = KvLayerView::kBlockTokens;
constexpr float kNegInf = -std::numeric_limits<float>::infinity();

/// Online-softmax state of one query.
struct Running {
  float max = kNegInf;
  float sum = 0.0F;
};

/// Scores of one block; those outside [first, last] are -inf.
float ScoreBlock(const float* q,
                 const float* keys,
                 int head_dim,
                 float scale,
                 int first,
                 int last,
                 float* scores) {
  float max = kNegInf;
  for (int t = 0; t < kBlock; ++t) {
    scores[t] = kNegInf;
    if (t < first || t > last) continue;
    float sum = 0.0F;
    for (int d = 0; d < head_dim; ++d) sum = std::fma(q[d], keys[d * kBlock + t], sum);
    scores[t] = sum * scale;
    max = std::max(max, scores[t]);
  }
  return max;
}

void AttendOne(const KvLayerView& cache,
               const float* q,
               float* out,
               int position,
               std::span<const BlockId> blocks,
               const AttentionShape& shape,
               int kv_head) {
  const int dim = cache.head_dim;
  const int first_visible = internal::FirstVisible(position, shape.window);
  Running run;
  std::fill_n(out, dim, 0.0F);
  for (int b = first_visible / kBlock; b <= position / kBlock; ++b) {
    const std::int64_t base = blocks[static_cast<std::size_t>(b)].value * cache.block_elements() +
                              static_cast<std::int64_t>(kv_head) * dim * kBlock;
    const int first = std::max(0, first_visible - b * kBlock);
    const int last = std::min(kBlock - 1, position - b * kBlock);
    float scores[kBlock];
    const float max =
        std::max(run.max, ScoreBlock(q, cache.keys + base, dim, shape.scale, first, last, scores));
    const float keep = std::exp(run.max - max);
    for (int d = 0; d < dim; ++d) out[d] *= keep;
    run.sum *= keep;
    run.max = max;
    for (int t = first; t <= last; ++t) {
      const float p = std::exp(scores[t] - max);
      run.sum += p;
      const float* value = cache.values + base + static_cast<std::int64_t>(t) * dim;
      for (int d = 0; d < dim; ++d) out[d] = std::fma(p, value[d], out[d]);
    }
  }
  for (int d = 0; d < dim; ++d) out[d] /= run.sum;
}

void AttendTileScalar(const KvLayerView& cache,
                      const internal::QueryTile& tile,
                      std::span<const BlockId> blocks,
                      const AttentionShape& shape,
                      int kv_head) {
  for (int i = 0; i < tile.count; ++i) {
    AttendOne(cache, tile.q[i], tile.out[i], tile.position[i], blocks, shape, kv_head);
  }
}

}  // namespace

void WriteKvHead(const KvLayerView& cache,
                 BlockId block,
                 int slot,
                 int kv_head,
                 const float* k,
                 const float* v) {
  const std::int64_t dim = cache.head_dim;
  const std::int64_t base = block.value * cache.block_elements() + kv_head * dim * kBlock;
  for (std::int64_t d = 0; d < dim; ++d) cache.keys[base + d * kBlock + slot] = k[d];
  std::copy_n(v, dim, cache.values + base + slot * dim);
}

void WriteKv(const KvLayerView& cache, BlockId block, int slot, const float* k, const float* v) {
  for (int h = 0; h < cache.kv_heads; ++h) {
    const std::int64_t at = static_cast<std::int64_t>(h) * cache.head_dim;
    WriteKvHead(cache, block, slot, h, k + at, v + at);
  }
}

void PagedAttention(const KvLayerView& cache,
                    const AttentionRows& rows,
                    const AttentionShape& shape,
                    int kv_head,
                    Isa isa) {
  HOLMES_DCHECK(shape.heads % cache.kv_heads == 0);
  const int group = shape.heads / cache.kv_heads;
  const bool simd = isa != Isa::kScalar && cache.head_dim % 16 == 0 &&
                    cache.head_dim <= internal::kMaxHeadDimSimd;
  const internal::TileFunction attend = !simd                 ? AttendTileScalar
                                        : isa >= Isa::kAvx512 ? internal::AttendTileAvx512
                                                              : internal::AttendTileAvx2;
  internal::QueryTile tile;
  for (int t = 0; t < rows.num_tokens; ++t) {
    for (int g = 0; g < group; ++g) {
      const std::int64_t head = (static_cast<std::int64_t>(kv_head) * group + g) * cache.head_dim;
      tile.q[tile.count] = rows.q + t * rows.ldq + head;
      tile.out[tile.count] = rows.out + t * rows.ldo + head;
      tile.position[tile.count] = rows.first_position + t;
      if (++tile.count < internal::QueryTile::kTile) continue;
      attend(cache, tile, rows.blocks, shape, kv_head);
      tile.count = 0;
    }
  }
  if (tile.count > 0) attend(cache, tile, rows.blocks, shape, kv_head);
}

}  // namespace holmes::kernels
