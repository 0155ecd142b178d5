/// The merges of a byte pair encoding and the merging itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace holmes::text {

/// Which pairs of neighbours join, in which order. Filled once, then immutable and thread-safe.
class MergeTable {
 public:
  static constexpr std::int32_t kNone = -1;

  /// Room for `num_merges`, at most 2^30.
  explicit MergeTable(std::size_t num_merges = 0);

  /// A pair that is there already takes the new rank, as in the `tokenizers` library.
  void Insert(TokenId left, TokenId right, std::int32_t rank, TokenId result);

  struct Merge {
    std::int32_t rank = kNone;
    TokenId result = kNone;
  };
  /// rank = kNone when the two do not join.
  Merge Find(TokenId left, TokenId right) const;

  /// Joins neighbours, lowest rank first and leftmost of equals, until no pair joins any more.
  /// Cost: n log n, n = symbols.size(). Precondition: fewer than 2^31 symbols, none negative.
  void Apply(std::vector<TokenId>& symbols) const;

 private:
  struct Slot {
    std::uint64_t key = ~std::uint64_t{0};
    Merge merge;
  };
  std::size_t SlotOf(std::uint64_t key) const;

  // Open addressing: at most half full, so that a search ends.
  std::vector<Slot> slots_;
  int shift_ = 0;
};

}  // namespace holmes::text
