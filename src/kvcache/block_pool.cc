#include "kvcache/block_pool.h"

#include <fmt/format.h>

namespace holmes::kvcache {

BlockPool::BlockPool(int num_blocks)
    : refs_(static_cast<std::size_t>(num_blocks), 0), cached_(refs_.size(), false) {
  free_.reserve(refs_.size());
  // Low ids first: a little load touches little memory.
  for (int i = num_blocks - 1; i >= 0; --i) free_.push_back(BlockId{i});
}

std::optional<BlockId> BlockPool::TryAllocate() {
  if (free_.empty()) return std::nullopt;
  const BlockId id = free_.back();
  free_.pop_back();
  refs_[Index(id)] = 1;
  return id;
}

void BlockPool::AddRef(BlockId id) {
  HOLMES_DCHECK(refs_[Index(id)] > 0 || cached_[Index(id)], "a reference to a free block");
  if (cached_[Index(id)]) {
    cached_[Index(id)] = false;
    --num_cached_;
  }
  ++refs_[Index(id)];
}

bool BlockPool::Release(BlockId id, bool keep) {
  HOLMES_CHECK(refs_[Index(id)] > 0, "a block was released twice");
  if (--refs_[Index(id)] > 0) return false;
  if (keep) {
    cached_[Index(id)] = true;
    ++num_cached_;
  } else {
    free_.push_back(id);
  }
  return true;
}

void BlockPool::Evict(BlockId id) {
  HOLMES_CHECK(cached_[Index(id)], "only a cached block can be evicted");
  cached_[Index(id)] = false;
  --num_cached_;
  free_.push_back(id);
}

Status BlockPool::Check(const std::vector<int>& expected_refs) const {
  std::vector<bool> is_free(refs_.size(), false);
  for (const BlockId id : free_) {
    if (is_free[Index(id)]) {
      return base::InternalError(fmt::format("block {} is twice in the free list", id.value));
    }
    is_free[Index(id)] = true;
  }
  int cached = 0;
  for (std::size_t i = 0; i < refs_.size(); ++i) {
    const int states = (is_free[i] ? 1 : 0) + (cached_[i] ? 1 : 0) + (refs_[i] > 0 ? 1 : 0);
    cached += cached_[i] ? 1 : 0;
    if (states != 1) {
      return base::InternalError(
          fmt::format("block {} is in {} states (references {})", i, states, refs_[i]));
    }
    if (refs_[i] != expected_refs[i]) {
      return base::InternalError(fmt::format(
          "block {} counts {} references, the tables hold {}", i, refs_[i], expected_refs[i]));
    }
  }
  if (cached != num_cached_) {
    return base::InternalError(
        fmt::format("{} blocks are cached, {} were counted", cached, num_cached_));
  }
  return OkStatus();
}

}  // namespace holmes::kvcache
