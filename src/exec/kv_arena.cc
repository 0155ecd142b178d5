#include "exec/kv_arena.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

namespace holmes::exec {

std::int64_t KvArena::BlockBytes(const model::KvGroup& group) {
  return static_cast<std::int64_t>(group.num_layers) * 2 * group.num_kv_heads * group.head_dim *
         kernels::KvLayerView::kBlockTokens * static_cast<std::int64_t>(sizeof(float));
}

StatusOr<std::unique_ptr<KvArena>> KvArena::Create(const model::KvGroup& group, int num_blocks) {
  const auto bytes =
      static_cast<std::size_t>(BlockBytes(group)) * static_cast<std::size_t>(num_blocks);
  void* base = mmap(
      nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return base::ErrnoError(errno, fmt::format("mapping {} bytes for the KV cache", bytes));
  madvise(base, bytes, MADV_HUGEPAGE);  // a hint; without huge pages it is only slower
  return std::unique_ptr<KvArena>(new KvArena(group, num_blocks, static_cast<float*>(base), bytes));
}

KvArena::~KvArena() { munmap(base_, bytes_); }

std::int64_t KvArena::layer_elements() const {
  return static_cast<std::int64_t>(num_blocks_) * group_.num_kv_heads * group_.head_dim *
         kernels::KvLayerView::kBlockTokens;
}

kernels::KvLayerView KvArena::Layer(int layer) const {
  float* keys = base_ + 2 * layer * layer_elements();
  return {.keys = keys,
          .values = keys + layer_elements(),
          .kv_heads = group_.num_kv_heads,
          .head_dim = group_.head_dim};
}

void KvArena::CopyBlock(BlockId from, BlockId to) const {
  for (int layer = 0; layer < group_.num_layers; ++layer) {
    const kernels::KvLayerView view = Layer(layer);
    const std::int64_t n = view.block_elements();
    std::copy_n(view.keys + from.value * n, n, view.keys + to.value * n);
    std::copy_n(view.values + from.value * n, n, view.values + to.value * n);
  }
}

}  // namespace holmes::exec
