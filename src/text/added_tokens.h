/// Finds a vocabulary's added tokens in text, before anything else is done with it.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "text/vocab_spec.h"

namespace holmes::text {

/// Immutable; thread-safe. Leftmost match, the longest of those that begin together.
class AddedTokenMatcher {
 public:
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

  /// A piece of text, or one added token (`id` >= 0).
  struct Piece {
    std::string_view text;
    TokenId id = -1;
  };
  /// With `special` unset, special tokens are text like any other.
  std::vector<Piece> Split(std::string_view text, bool special) const;

 private:
  const AddedToken* MatchAt(std::string_view text, std::size_t at, bool special) const;
  std::vector<AddedToken> tokens_;  // longest first
  std::array<std::vector<const AddedToken*>, 256> by_first_byte_;
};

}  // namespace holmes::text
