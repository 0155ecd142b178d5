#include "kvcache/kv_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace holmes::kvcache {
namespace {

int CeilDiv(int a, int b) { return (a + b - 1) / b; }

}  // namespace

StatusOr<std::unique_ptr<KvManager>> KvManager::Create(KvOptions options) {
  if (options.groups.empty())
    return base::InvalidArgumentError("a KV cache needs at least one group");
  for (std::size_t g = 0; g < options.groups.size(); ++g) {
    const GroupOptions& group = options.groups[g];
    if (group.num_blocks < 1 || group.block_tokens < 1) {
      return base::InvalidArgumentError(
          fmt::format("KV group {} has {} blocks of {} tokens; both must be at least 1",
                      g,
                      group.num_blocks,
                      group.block_tokens));
    }
    if (options.prefix_reuse && group.block_tokens != options.groups[0].block_tokens) {
      return base::InvalidArgumentError(
          fmt::format("prefix reuse needs blocks of equal size, but KV group {} has {} tokens per "
                      "block and group 0 has {}",
                      g,
                      group.block_tokens,
                      options.groups[0].block_tokens));
    }
  }
  return std::unique_ptr<KvManager>(new KvManager(std::move(options)));
}

KvManager::KvManager(KvOptions options) : options_(std::move(options)), index_(options_.hash) {
  for (const GroupOptions& group : options_.groups) {
    pools_.emplace_back(group.num_blocks);
    node_of_.emplace_back(static_cast<std::size_t>(group.num_blocks), PrefixIndex::kNone);
  }
}

KvManager::~KvManager() {
  HOLMES_CHECK(sequences_.empty(), "sequences outlive their KV blocks");
  for (const BlockPool& pool : pools_)
    HOLMES_CHECK(pool.num_held() == 0, "a KV block did not come home");
}

KvManager::Sequence& KvManager::At(SequenceId id) {
  const auto it = sequences_.find(id);
  HOLMES_CHECK(it != sequences_.end(), "unknown sequence");
  return it->second;
}

const KvManager::Sequence& KvManager::At(SequenceId id) const {
  return const_cast<KvManager*>(this)->At(id);
}

void KvManager::Add(SequenceId id, std::string name_space) {
  const bool added =
      sequences_
          .emplace(id,
                   Sequence{.name_space = std::move(name_space),
                            .tables = std::vector<std::vector<BlockId>>(pools_.size()),
                            .sealed_chain = {}})
          .second;
  HOLMES_CHECK(added, "a sequence was added twice");
}

int KvManager::NumShared(const Sequence& sequence,
                         int group,
                         int written_from,
                         int up_to_tokens) const {
  const auto g = static_cast<std::size_t>(group);
  const int block_tokens = options_.groups[g].block_tokens;
  const std::vector<BlockId>& table = sequence.tables[g];
  const int end = std::min(static_cast<int>(table.size()), CeilDiv(up_to_tokens, block_tokens));
  int shared = 0;
  for (int i = written_from / block_tokens; i < end; ++i) {
    shared += pools_[g].num_refs(table[static_cast<std::size_t>(i)]) > 1 ? 1 : 0;
  }
  return shared;
}

bool KvManager::TryReserve(SequenceId id,
                           int written_from,
                           int up_to_tokens,
                           int spare_blocks,
                           std::vector<Copy>& copies) {
  Sequence& sequence = At(id);
  const auto needed = [&](std::size_t g) {
    const int wanted = CeilDiv(up_to_tokens, options_.groups[g].block_tokens);
    const int missing = std::max(0, wanted - static_cast<int>(sequence.tables[g].size()));
    return missing + NumShared(sequence, static_cast<int>(g), written_from, up_to_tokens);
  };
  for (std::size_t g = 0; g < pools_.size(); ++g) {
    const int available = pools_[g].num_free() + pools_[g].num_cached();
    const int count = needed(g);
    if (count > 0 && count + spare_blocks > available) return false;
  }
  for (std::size_t g = 0; g < pools_.size(); ++g) {
    if (const int count = needed(g); count > 0) EvictFor(static_cast<int>(g), count);
    std::vector<BlockId>& table = sequence.tables[g];
    const int block_tokens = options_.groups[g].block_tokens;
    const auto end = static_cast<std::size_t>(CeilDiv(up_to_tokens, block_tokens));
    for (auto i = static_cast<std::size_t>(written_from / block_tokens);
         i < std::min(end, table.size());
         ++i) {
      if (pools_[g].num_refs(table[i]) > 1) {
        const BlockId fresh = Allocate(static_cast<int>(g));
        copies.push_back({.group = static_cast<int>(g), .from = table[i], .to = fresh});
        pools_[g].Release(std::exchange(table[i], fresh), false);
      } else if (const auto node = NodeOf(static_cast<int>(g), table[i]);
                 node != PrefixIndex::kNone) {
        RemoveNode(node);  // its only holder writes over it
      }
    }
    while (table.size() < end) table.push_back(Allocate(static_cast<int>(g)));
  }
  return true;
}

void KvManager::EvictFor(int group, int num_blocks) {
  while (pools_[static_cast<std::size_t>(group)].num_free() < num_blocks) {
    const PrefixIndex::NodeIdx oldest = index_.Oldest();
    HOLMES_CHECK(oldest != PrefixIndex::kNone, "cached blocks that no node knows");
    RemoveNode(oldest);
  }
}

void KvManager::RemoveNode(PrefixIndex::NodeIdx node) {
  const std::vector<BlockId> blocks = index_.node(node).blocks;
  for (std::size_t g = 0; g < blocks.size(); ++g) {
    NodeOf(static_cast<int>(g), blocks[g]) = PrefixIndex::kNone;
    if (pools_[g].num_refs(blocks[g]) == 0) pools_[g].Evict(blocks[g]);
  }
  index_.Remove(node);
}

BlockId KvManager::Allocate(int group) {
  const std::optional<BlockId> id = pools_[static_cast<std::size_t>(group)].TryAllocate();
  HOLMES_CHECK(id.has_value(), "room was counted before");
  return *id;
}

void KvManager::Fork(SequenceId parent_id, SequenceId child_id, int tokens) {
  const Sequence& parent = At(parent_id);
  Sequence& child = At(child_id);
  for (std::size_t g = 0; g < pools_.size(); ++g) {
    HOLMES_CHECK(child.tables[g].empty(), "a fork needs an empty child");
    const auto count = static_cast<std::size_t>(CeilDiv(tokens, options_.groups[g].block_tokens));
    HOLMES_CHECK(count <= parent.tables[g].size(),
                 "a fork of tokens that the parent has no blocks for");
    child.tables[g].assign(parent.tables[g].begin(),
                           parent.tables[g].begin() + static_cast<std::ptrdiff_t>(count));
    for (const BlockId id : child.tables[g]) pools_[g].AddRef(id);
  }
  const auto full = static_cast<std::size_t>(tokens / options_.groups[0].block_tokens);
  const std::size_t sealed = std::min(full, parent.sealed_chain.size());
  child.sealed_chain.assign(parent.sealed_chain.begin(),
                            parent.sealed_chain.begin() + static_cast<std::ptrdiff_t>(sealed));
}

void KvManager::ReleaseBlocks(Sequence& sequence) {
  for (std::size_t g = 0; g < pools_.size(); ++g) {
    std::vector<BlockId>& table = sequence.tables[g];
    // Last block first: the end of a chain becomes idle, and so leaves, before what it hangs on.
    for (auto it = table.rbegin(); it != table.rend(); ++it) {
      const PrefixIndex::NodeIdx node = NodeOf(static_cast<int>(g), *it);
      const bool gone = pools_[g].Release(*it, node != PrefixIndex::kNone);
      if (gone && node != PrefixIndex::kNone) index_.SetIdle(node, true);
    }
    table.clear();
  }
  sequence.sealed_chain.clear();
}

void KvManager::Drop(SequenceId id) { ReleaseBlocks(At(id)); }

void KvManager::Free(SequenceId id) {
  Drop(id);
  sequences_.erase(id);
}

std::vector<PrefixIndex::NodeIdx> KvManager::Match(std::string_view name_space,
                                                   std::span<const TokenId> tokens) const {
  std::vector<PrefixIndex::NodeIdx> found;
  const std::optional<PrefixIndex::Serial> root =
      options_.prefix_reuse ? index_.FindRoot(name_space) : std::nullopt;
  if (!root || tokens.empty()) return found;
  const auto block_tokens = static_cast<std::size_t>(options_.groups[0].block_tokens);
  PrefixIndex::Serial parent = *root;
  for (std::size_t begin = 0; begin + block_tokens < tokens.size(); begin += block_tokens) {
    const PrefixIndex::NodeIdx node = index_.Find(parent, tokens.subspan(begin, block_tokens));
    if (node == PrefixIndex::kNone) break;
    found.push_back(node);
    parent = index_.node(node).serial;
  }
  return found;
}

int KvManager::MatchPrefix(std::string_view name_space, std::span<const TokenId> tokens) const {
  return static_cast<int>(Match(name_space, tokens).size()) * options_.groups[0].block_tokens;
}

int KvManager::AdoptPrefix(SequenceId id, std::span<const TokenId> tokens) {
  Sequence& sequence = At(id);
  HOLMES_CHECK(sequence.tables[0].empty(), "a prefix is adopted by an empty sequence");
  const std::vector<PrefixIndex::NodeIdx> found = Match(sequence.name_space, tokens);
  for (const PrefixIndex::NodeIdx node : found) {
    for (std::size_t g = 0; g < pools_.size(); ++g) {
      const BlockId block = index_.node(node).blocks[g];
      pools_[g].AddRef(block);
      sequence.tables[g].push_back(block);
    }
    index_.SetIdle(node, false);
    sequence.sealed_chain.push_back(index_.node(node).serial);
  }
  return static_cast<int>(found.size()) * options_.groups[0].block_tokens;
}

void KvManager::Seal(SequenceId id, std::span<const TokenId> computed) {
  if (!options_.prefix_reuse) return;
  Sequence& sequence = At(id);
  const auto block_tokens = static_cast<std::size_t>(options_.groups[0].block_tokens);
  const std::size_t full = computed.size() / block_tokens;
  while (sequence.sealed_chain.size() < full) {
    const std::size_t i = sequence.sealed_chain.size();
    const std::span<const TokenId> tokens = computed.subspan(i * block_tokens, block_tokens);
    const PrefixIndex::Serial parent =
        i == 0 ? index_.MakeRoot(sequence.name_space) : sequence.sealed_chain.back();
    if (!index_.IsLive(parent))
      return;  // evicted meanwhile (an equal block stood for ours): nobody could find what hangs on
               // it
    PrefixIndex::NodeIdx node = index_.Find(parent, tokens);
    if (node == PrefixIndex::kNone) {
      if (NodeOf(0, sequence.tables[0][i]) != PrefixIndex::kNone)
        return;  // known already, in a chain whose beginning is gone
      std::vector<BlockId> blocks;
      for (const std::vector<BlockId>& table : sequence.tables) blocks.push_back(table[i]);
      node = index_.Insert(sequence.name_space, parent, tokens, blocks);
      for (std::size_t g = 0; g < blocks.size(); ++g) NodeOf(static_cast<int>(g), blocks[g]) = node;
    }
    sequence.sealed_chain.push_back(index_.node(node).serial);
  }
}

std::span<const BlockId> KvManager::table(SequenceId id, int group) const {
  return At(id).tables[static_cast<std::size_t>(group)];
}

GroupStats KvManager::stats(int group) const {
  const BlockPool& pool = pools_[static_cast<std::size_t>(group)];
  return {.total = pool.total(),
          .free = pool.num_free(),
          .cached = pool.num_cached(),
          .held = pool.num_held()};
}

int KvManager::capacity_tokens() const {
  std::int64_t capacity = std::numeric_limits<int>::max();
  for (const GroupOptions& group : options_.groups) {
    capacity = std::min(capacity, static_cast<std::int64_t>(group.num_blocks) * group.block_tokens);
  }
  return static_cast<int>(capacity);
}

Status KvManager::CheckIntegrity() const {
  for (std::size_t g = 0; g < pools_.size(); ++g) {
    std::vector<int> refs(static_cast<std::size_t>(pools_[g].total()), 0);
    for (const auto& [id, sequence] : sequences_) {
      for (const BlockId block : sequence.tables[g]) ++refs[static_cast<std::size_t>(block.value)];
    }
    HOLMES_RETURN_IF_ERROR(pools_[g].Check(refs).WithContext(fmt::format("KV group {}", g)));
    if (pools_[g].num_cached() != index_.num_idle()) {
      return base::InternalError(fmt::format("KV group {} has {} cached blocks and {} idle nodes",
                                             g,
                                             pools_[g].num_cached(),
                                             index_.num_idle()));
    }
  }
  return CheckIndex();
}

Status KvManager::CheckIndex() const {
  int pointed_at = 0;
  for (std::size_t b = 0; b < node_of_[0].size(); ++b) {
    const PrefixIndex::NodeIdx idx = node_of_[0][b];
    if (idx == PrefixIndex::kNone) continue;
    ++pointed_at;
    const PrefixIndex::Node& node = index_.node(idx);
    for (std::size_t g = 0; g < pools_.size(); ++g) {
      if (NodeOf(static_cast<int>(g), node.blocks[g]) != idx) {
        return base::InternalError(
            fmt::format("block {} of KV group {} does not know its node", node.blocks[g].value, g));
      }
      if ((pools_[g].num_refs(node.blocks[g]) == 0) != node.idle) {
        return base::InternalError(
            fmt::format("block {} of KV group {} and its node disagree on being idle",
                        node.blocks[g].value,
                        g));
      }
    }
  }
  if (pointed_at != index_.num_nodes()) {
    return base::InternalError(
        fmt::format("{} nodes, {} blocks that have one", index_.num_nodes(), pointed_at));
  }
  return OkStatus();
}

}  // namespace holmes::kvcache
