#include "kvcache/prefix_index.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace holmes::kvcache {

std::uint64_t PrefixIndex::DefaultHash(Serial parent, std::span<const TokenId> tokens) {
  // Multiply and fold; quality only decides how many candidates are compared.
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15ULL;
  std::uint64_t h = (parent + 1) * kOdd;
  for (const TokenId token : tokens) {
    h = (h ^ static_cast<std::uint32_t>(token)) * kOdd;
    h ^= h >> 32;
  }
  return h;
}

std::optional<PrefixIndex::Serial> PrefixIndex::FindRoot(std::string_view name_space) const {
  const auto it = roots_.find(std::string(name_space));
  if (it == roots_.end()) return std::nullopt;
  return it->second.serial;
}

PrefixIndex::Serial PrefixIndex::MakeRoot(const std::string& name_space) {
  const auto [it, added] =
      roots_.try_emplace(name_space, Root{.serial = next_serial_, .num_nodes = 0});
  if (added) live_.emplace(next_serial_++, kNone);
  return it->second.serial;
}

PrefixIndex::NodeIdx PrefixIndex::Find(Serial parent, std::span<const TokenId> tokens) const {
  const auto [begin, end] = by_hash_.equal_range(hash_(parent, tokens));
  for (auto it = begin; it != end; ++it) {
    const Node& candidate = node(it->second);
    if (candidate.parent == parent && std::ranges::equal(candidate.tokens, tokens))
      return it->second;
  }
  return kNone;
}

PrefixIndex::NodeIdx PrefixIndex::Insert(const std::string& name_space,
                                         Serial parent,
                                         std::span<const TokenId> tokens,
                                         std::vector<BlockId> blocks) {
  HOLMES_CHECK(live_.contains(parent), "a node needs a live parent");
  NodeIdx idx = 0;
  if (unused_.empty()) {
    idx = static_cast<NodeIdx>(nodes_.size());
    nodes_.emplace_back();
  } else {
    idx = unused_.back();
    unused_.pop_back();
  }
  At(idx) = Node{.serial = next_serial_++,
                 .parent = parent,
                 .tokens = {tokens.begin(), tokens.end()},
                 .blocks = std::move(blocks),
                 .name_space = name_space,
                 .hash = hash_(parent, tokens)};
  by_hash_.emplace(At(idx).hash, idx);
  live_.emplace(At(idx).serial, idx);
  MakeRoot(name_space);  // its root may be gone where only an orphaned chain was left
  ++roots_.at(name_space).num_nodes;
  return idx;
}

void PrefixIndex::Remove(NodeIdx idx) {
  SetIdle(idx, false);
  Node& gone = At(idx);
  const auto [begin, end] = by_hash_.equal_range(gone.hash);
  by_hash_.erase(
      std::find_if(begin, end, [idx](const auto& entry) { return entry.second == idx; }));
  live_.erase(gone.serial);
  const auto root = roots_.find(gone.name_space);
  if (--root->second.num_nodes == 0) {
    live_.erase(root->second.serial);
    roots_.erase(root);
  }
  gone = Node{};
  unused_.push_back(idx);
}

void PrefixIndex::SetIdle(NodeIdx idx, bool idle) {
  Node& changed = At(idx);
  if (changed.idle == idle) return;
  changed.idle = idle;
  if (idle) {
    ++num_idle_;
    changed.older = newest_;
    changed.newer = kNone;
    (newest_ == kNone ? oldest_ : At(newest_).newer) = idx;
    newest_ = idx;
    return;
  }
  --num_idle_;
  (changed.older == kNone ? oldest_ : At(changed.older).newer) = changed.newer;
  (changed.newer == kNone ? newest_ : At(changed.newer).older) = changed.older;
}

}  // namespace holmes::kvcache
