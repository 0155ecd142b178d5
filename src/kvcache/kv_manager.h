/// Which sequence holds which KV blocks. Ids only: bytes are the back end's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "kvcache/block_pool.h"
#include "kvcache/prefix_index.h"

namespace holmes::kvcache {

/// Layers of equal shape and window share a group: one pool, and one table per sequence.
struct GroupOptions {
  int num_blocks = 0;
  int block_tokens = 16;
  int window_tokens = 0;  // 0 = all positions are kept
};

struct KvOptions {
  std::vector<GroupOptions> groups;
  /// Keep full blocks after their sequences ended and take them up again. Needs equal block_tokens
  /// in all groups.
  bool prefix_reuse = false;
  /// Replaced by tests that force collisions.
  PrefixIndex::HashFunction hash = &PrefixIndex::DefaultHash;
};

/// A block whose content must be copied before `to` is written. Copies of one step are done in the
/// order in which they were returned.
struct Copy {
  int group = 0;
  BlockId from;
  BlockId to;
};

struct GroupStats {
  int total = 0;
  int free = 0;
  int cached = 0;
  int held = 0;
};

/// One thread at a time. Invariants (CheckIntegrity):
///  1. free + cached + held == total in each group, and a block's reference count is the number of
///  tables that hold it.
///  2. A block that several sequences hold is never handed out for writing: TryReserve copies it
///  first.
///  3. A cached block's content is exactly the tokens of its PrefixIndex node after those of the
///  node's ancestors.
/// The destructor checks that every sequence was freed and every block came home.
class KvManager {
 public:
  /// Errors: kInvalidArgument (no group, a group without blocks or tokens, prefix_reuse with
  /// unequal blocks).
  static StatusOr<std::unique_ptr<KvManager>> Create(KvOptions options);
  ~KvManager();
  KvManager(const KvManager&) = delete;
  KvManager& operator=(const KvManager&) = delete;

  /// A new sequence without blocks. `name_space` separates what must never be shared: model,
  /// adapter, tenant's salt.
  void Add(SequenceId id, std::string name_space);

  /// Makes the tables cover positions [0, up_to_tokens) in all groups such that [written_from,
  /// up_to_tokens) may be written: shared blocks in that range are exchanged for new ones and
  /// reported in `copies` (appended). All or nothing: false, with nothing changed, when that would
  /// leave a group with fewer than `spare_blocks` blocks that are free or cached. May evict cached
  /// blocks, oldest first. Cost: the number of new blocks.
  bool TryReserve(SequenceId id,
                  int written_from,
                  int up_to_tokens,
                  int spare_blocks,
                  std::vector<Copy>& copies);

  /// Gives `child`, which has no blocks yet, those of `parent` that hold positions [0, tokens).
  /// Takes no new block; never fails.
  void Fork(SequenceId parent, SequenceId child, int tokens);

  /// Gives the blocks back; the sequence stays, empty.
  void Drop(SequenceId id);
  /// Gives the blocks back and forgets the sequence.
  void Free(SequenceId id);

  /// How many of `tokens` are in cached or held full blocks. A multiple of block_tokens, less than
  /// tokens.size(): one token at least is left to compute, since its logits are wanted. 0 without
  /// prefix_reuse. Cost: linear in the hit.
  int MatchPrefix(std::string_view name_space, std::span<const TokenId> tokens) const;
  /// Gives `id`, which has no blocks yet, the blocks that MatchPrefix finds. Returns the same
  /// number.
  int AdoptPrefix(SequenceId id, std::span<const TokenId> tokens);
  /// Tells that the KV of `computed` (the sequence's first tokens) is written, so that its full
  /// blocks can be found by others.
  void Seal(SequenceId id, std::span<const TokenId> computed);

  /// Element i holds positions [i * block_tokens, (i + 1) * block_tokens). Valid until the
  /// sequence's next change.
  std::span<const BlockId> table(SequenceId id, int group) const;
  int num_groups() const { return static_cast<int>(options_.groups.size()); }
  const GroupOptions& group(int g) const { return options_.groups[static_cast<std::size_t>(g)]; }
  GroupStats stats(int group) const;
  /// The longest sequence that fits when it has all blocks for itself, in tokens.
  int capacity_tokens() const;

  /// kInternal names the first broken invariant. Cost: all blocks.
  Status CheckIntegrity() const;

 private:
  struct Sequence {
    std::string name_space;
    std::vector<std::vector<BlockId>> tables;       // by group
    std::vector<PrefixIndex::Serial> sealed_chain;  // by block: its node, or that of an equal block
  };
  explicit KvManager(KvOptions options);
  Sequence& At(SequenceId id);
  const Sequence& At(SequenceId id) const;
  int NumShared(const Sequence& sequence, int group, int written_from, int up_to_tokens) const;
  void EvictFor(int group, int num_blocks);
  void RemoveNode(PrefixIndex::NodeIdx node);
  BlockId Allocate(int group);
  void ReleaseBlocks(Sequence& sequence);
  /// The nodes of the longest known prefix.
  std::vector<PrefixIndex::NodeIdx> Match(std::string_view name_space,
                                          std::span<const TokenId> tokens) const;
  PrefixIndex::NodeIdx& NodeOf(int group, BlockId id) {
    return node_of_[static_cast<std::size_t>(group)][static_cast<std::size_t>(id.value)];
  }
  PrefixIndex::NodeIdx NodeOf(int group, BlockId id) const {
    return node_of_[static_cast<std::size_t>(group)][static_cast<std::size_t>(id.value)];
  }
  Status CheckIndex() const;

  KvOptions options_;
  std::vector<BlockPool> pools_;                            // by group
  std::vector<std::vector<PrefixIndex::NodeIdx>> node_of_;  // by group, block
  PrefixIndex index_;
  std::unordered_map<SequenceId, Sequence> sequences_;
};

}  // namespace holmes::kvcache
