/// The blocks of one KV group, by reference count.
#pragma once

#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace holmes::kvcache {

/// One thread at a time. A block is in exactly one state:
///   free    nobody refers to it and its content means nothing,
///   held    num_refs >= 1 sequences have it in their tables,
///   cached  nobody refers to it, but its content is known and may be taken up again (KvManager
///   decides which).
/// Invariant: free + held + cached == total.
class BlockPool {
 public:
  explicit BlockPool(int num_blocks);

  /// A held block with one reference; empty when no block is free (cached ones must be evicted
  /// first).
  std::optional<BlockId> TryAllocate();
  /// One more reference to a held or cached block.
  void AddRef(BlockId id);
  /// One reference less. True when that was the last one: the block is free again, or cached where
  /// `keep`.
  bool Release(BlockId id, bool keep);
  /// A cached block becomes free.
  void Evict(BlockId id);

  int num_refs(BlockId id) const { return refs_[Index(id)]; }
  int total() const { return static_cast<int>(refs_.size()); }
  int num_free() const { return static_cast<int>(free_.size()); }
  int num_cached() const { return num_cached_; }
  int num_held() const { return total() - num_free() - num_cached(); }

  /// Compares the counts with `expected_refs` (index = block) and looks for blocks that are in two
  /// states. kInternal names the first fault.
  Status Check(const std::vector<int>& expected_refs) const;

 private:
  static std::size_t Index(BlockId id) { return static_cast<std::size_t>(id.value); }

  std::vector<int> refs_;     // by block
  std::vector<bool> cached_;  // by block
  std::vector<BlockId> free_;
  int num_cached_ = 0;
};

}  // namespace holmes::kvcache
