/// The bytes behind the KV manager's block ids: one region, laid out [layer][keys, values][block].
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "kernels/attention/paged_attention.h"
#include "model/graph.h"

namespace holmes::exec {

/// Used by the executor's threads; distinct blocks may be written at the same time.
class KvArena {
 public:
  /// Bytes of one block over all layers of `group`.
  static std::int64_t BlockBytes(const model::KvGroup& group);

  /// Pages are taken when first touched; all start as zero.
  /// Errors: kResourceExhausted when the address space cannot be had.
  static StatusOr<std::unique_ptr<KvArena>> Create(const model::KvGroup& group, int num_blocks);
  ~KvArena();
  KvArena(const KvArena&) = delete;
  KvArena& operator=(const KvArena&) = delete;

  int num_blocks() const { return num_blocks_; }
  /// `layer` counts within the group.
  kernels::KvLayerView Layer(int layer) const;
  void CopyBlock(BlockId from, BlockId to) const;

 private:
  KvArena(const model::KvGroup& group, int num_blocks, float* base, std::size_t bytes)
      : group_(group), num_blocks_(num_blocks), base_(base), bytes_(bytes) {}
  std::int64_t layer_elements() const;

  model::KvGroup group_;
  int num_blocks_;
  float* base_;
  std::size_t bytes_;
};

}  // namespace holmes::exec
