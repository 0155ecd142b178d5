/// Attention of query rows over a paged KV cache, and the cache's layout.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "kernels/cpu_features.h"

namespace holmes::kernels {

/// One layer's share of the KV arena, float32. A block holds 16 positions, so that one AVX-512
/// register holds a key element of all of them:
///   keys   [num_blocks, kv_heads, head_dim, 16]   (transposed)
///   values [num_blocks, kv_heads, 16, head_dim]
struct KvLayerView {
  static constexpr int kBlockTokens = 16;
  float* keys = nullptr;
  float* values = nullptr;
  int kv_heads = 0;
  int head_dim = 0;
  std::int64_t block_elements() const {
    return static_cast<std::int64_t>(kv_heads) * head_dim * kBlockTokens;
  }
};

/// Writes one token's keys and values into its place. k, v [kv_heads, head_dim]; slot = position %
/// 16 of `block`.
void WriteKv(const KvLayerView& cache, BlockId block, int slot, const float* k, const float* v);

/// The same for one KV head; k, v [head_dim].
void WriteKvHead(
    const KvLayerView& cache, BlockId block, int slot, int kv_head, const float* k, const float* v);

/// Queries of consecutive positions of one sequence.
struct AttentionRows {
  const float* q = nullptr;  // [num_tokens, heads, head_dim], row stride ldq
  float* out = nullptr;      // [num_tokens, heads, head_dim], row stride ldo
  std::int64_t ldq = 0;
  std::int64_t ldo = 0;
  int num_tokens = 0;
  int first_position = 0;
  std::span<const BlockId> blocks;  // positions [16 i, 16 i + 16) are in blocks[i]
};

struct AttentionShape {
  int heads = 0;  // query heads; a multiple of the cache's kv_heads
  float scale = 1.0F;
  int window =
      0;  // 0 = all earlier positions; otherwise the last `window` including the query's own
};

/// out = softmax(scale q K^T) V over positions <= the query's, for the query heads of one KV head.
/// Order:  every query walks the positions in absolute order with an online softmax (Milakov and
///         Gimelshein 2018) whose maximum is renewed at fixed positions (every 64 with AVX2 and
///         AVX-512, every 16 without), so its result does not depend on which rows are computed
///         with it.
/// Cost:   one pass over the keys and values per tile of up to 8 queries; no allocation.
void PagedAttention(const KvLayerView& cache,
                    const AttentionRows& rows,
                    const AttentionShape& shape,
                    int kv_head,
                    Isa isa);

}  // namespace holmes::kernels
