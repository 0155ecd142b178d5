/// Finding the blocks of a prefix that was computed before, by its tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.h"

namespace holmes::kvcache {

/// A node is one full block in the context of all blocks before it: (parent, the block's tokens) ->
/// a block per KV group. One thread at a time. Invariants:
///  1. A hit is exact: the hash only proposes, tokens and parent are compared; serials are never
///  reused, so equal chains are equal texts.
///  2. Chains start at a root per namespace (model, adapter, tenant's salt); no chain of one
///  namespace is reachable from another.
///  3. The idle nodes (no sequence holds their blocks) are ordered by when they became idle, oldest
///  first.
class PrefixIndex {
 public:
  /// A parent: a root or a node. Never reused.
  using Serial = std::uint64_t;
  /// Names a live node; reused after Remove.
  using NodeIdx = std::int32_t;
  static constexpr NodeIdx kNone = -1;
  using HashFunction = std::uint64_t (*)(Serial parent, std::span<const TokenId> tokens);

  struct Node {
    Serial serial = 0;
    Serial parent = 0;
    std::vector<TokenId> tokens;
    std::vector<BlockId> blocks;  // one per KV group
    std::string name_space;
    std::uint64_t hash = 0;
    bool idle = false;
    NodeIdx older = kNone, newer = kNone;  // neighbours in the idle order
  };

  explicit PrefixIndex(HashFunction hash = &DefaultHash) : hash_(hash) {}
  static std::uint64_t DefaultHash(Serial parent, std::span<const TokenId> tokens);

  /// The root of a namespace that has nodes.
  std::optional<Serial> FindRoot(std::string_view name_space) const;
  /// The same, made where there is none. It lives while the namespace has nodes: insert next.
  Serial MakeRoot(const std::string& name_space);
  /// kNone when there is none.
  NodeIdx Find(Serial parent, std::span<const TokenId> tokens) const;
  /// Precondition: Find(parent, tokens) is kNone. The node is not idle.
  NodeIdx Insert(const std::string& name_space,
                 Serial parent,
                 std::span<const TokenId> tokens,
                 std::vector<BlockId> blocks);
  /// Its children can no longer be found and leave when they are the oldest.
  void Remove(NodeIdx idx);
  void SetIdle(NodeIdx idx, bool idle);

  /// The node that has been idle longest; kNone when none is.
  NodeIdx Oldest() const { return oldest_; }
  bool IsLive(Serial serial) const { return live_.contains(serial); }
  const Node& node(NodeIdx idx) const { return nodes_[static_cast<std::size_t>(idx)]; }
  int num_nodes() const { return static_cast<int>(by_hash_.size()); }
  int num_idle() const { return num_idle_; }

 private:
  struct Root {
    Serial serial = 0;
    int num_nodes = 0;
  };
  Node& At(NodeIdx idx) { return nodes_[static_cast<std::size_t>(idx)]; }

  HashFunction hash_;
  std::vector<Node> nodes_;
  std::vector<NodeIdx> unused_;
  std::unordered_multimap<std::uint64_t, NodeIdx> by_hash_;
  std::unordered_map<Serial, NodeIdx> live_;  // kNone for a root
  std::unordered_map<std::string, Root> roots_;
  Serial next_serial_ = 1;
  NodeIdx oldest_ = kNone, newest_ = kNone;
  int num_idle_ = 0;
};

}  // namespace holmes::kvcache
