/// Identities as distinct types, so that a block id is never passed where a sequence id is wanted.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace holmes::base {

/// `Tag` makes the type distinct; `value` is the identity. -1 means "none" where a field may be
/// empty.
template <typename Tag, typename Rep>
struct StrongId {
  Rep value = static_cast<Rep>(-1);
  friend auto operator<=>(const StrongId&, const StrongId&) = default;
};

}  // namespace holmes::base

template <typename Tag, typename Rep>
struct std::hash<holmes::base::StrongId<Tag, Rep>> {
  std::size_t operator()(const holmes::base::StrongId<Tag, Rep>& id) const noexcept {
    return std::hash<Rep>()(id.value);
  }
};

namespace holmes {
/// A token of a model's vocabulary.
using TokenId = std::int32_t;
/// One request as the engine counts it; never reused within a process.
using RequestId = base::StrongId<struct RequestIdTag, std::uint64_t>;
/// One sequence (a request of n samples has n); never reused within a process.
using SequenceId = base::StrongId<struct SequenceIdTag, std::uint64_t>;
/// One KV block of a pool.
using BlockId = base::StrongId<struct BlockIdTag, std::int32_t>;
/// An adapter (LoRA); 0 is the base model.
using AdapterId = base::StrongId<struct AdapterIdTag, std::int32_t>;
}  // namespace holmes
