#include "text/merge_table.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/check.h"

namespace holmes::text {
namespace {

std::uint64_t PairKey(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

/// A piece's symbols as a doubly linked list over their first positions.
struct Symbol {
  TokenId id;
  std::int32_t previous;
  std::int32_t next;
  MergeTable::Merge merge;  // with the next symbol; rank kNone when they do not join
};

}  // namespace

MergeTable::MergeTable(std::size_t num_merges) {
  HOLMES_CHECK(num_merges <= std::size_t{1} << 30);
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(2, 2 * num_merges));
  slots_.resize(size);
  shift_ = 64 - std::countr_zero(size);
}

std::size_t MergeTable::SlotOf(std::uint64_t key) const {
  // Fibonacci hashing: the product's high bits depend on all of the key.
  std::size_t at = static_cast<std::size_t>(key * 0x9E3779B97F4A7C15U >> shift_);
  while (slots_[at].merge.rank != kNone && slots_[at].key != key)
    at = (at + 1) & (slots_.size() - 1);
  return at;
}

void MergeTable::Insert(TokenId left, TokenId right, std::int32_t rank, TokenId result) {
  const std::uint64_t key = PairKey(left, right);
  slots_[SlotOf(key)] = {key, {rank, result}};
}

MergeTable::Merge MergeTable::Find(TokenId left, TokenId right) const {
  return slots_[SlotOf(PairKey(left, right))].merge;
}

void MergeTable::Apply(std::vector<TokenId>& ids) const {
  const auto n = static_cast<std::int32_t>(ids.size());
  std::vector<Symbol> symbols(ids.size());
  // Candidates as rank << 32 | position: the smallest is the next to join. One is stale when the
  // symbol there no longer has a merge of that rank; a rank names its pair.
  std::vector<std::uint64_t> heap;
  const auto offer = [&](std::int32_t at) {
    Symbol& left = symbols[static_cast<std::size_t>(at)];
    left.merge =
        left.next < n ? Find(left.id, symbols[static_cast<std::size_t>(left.next)].id) : Merge{};
    if (left.merge.rank == kNone) return false;
    heap.push_back(static_cast<std::uint64_t>(left.merge.rank) << 32 |
                   static_cast<std::uint32_t>(at));
    return true;
  };
  const auto offer_to_heap = [&](std::int32_t at) {
    if (at >= 0 && offer(at)) std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  for (std::int32_t i = 0; i < n; ++i)
    symbols[static_cast<std::size_t>(i)] = {ids[static_cast<std::size_t>(i)], i - 1, i + 1, {}};
  for (std::int32_t i = 0; i < n; ++i) offer(i);
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const std::uint64_t best = heap.back();
    heap.pop_back();
    const auto at = static_cast<std::int32_t>(best & 0xFFFFFFFFU);
    Symbol& left = symbols[static_cast<std::size_t>(at)];
    if (left.merge.rank != static_cast<std::int32_t>(best >> 32)) continue;
    Symbol& right = symbols[static_cast<std::size_t>(left.next)];
    left.id = left.merge.result;
    left.next = right.next;
    right.merge = {};  // gone
    if (left.next < n) symbols[static_cast<std::size_t>(left.next)].previous = at;
    offer_to_heap(left.previous);
    offer_to_heap(at);
  }
  ids.clear();
  for (std::int32_t i = 0; i < n; i = symbols[static_cast<std::size_t>(i)].next)
    ids.push_back(symbols[static_cast<std::size_t>(i)].id);
}

}  // namespace holmes::text
