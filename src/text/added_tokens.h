/// Finds a vocabulary's added tokens in text, before anything else is done with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/vocab_spec.h"

namespace holmes::text {

/// Immutable; thread-safe. Leftmost match, the longest of those that begin together. A token with
/// lstrip or rstrip takes the white space beside it.
class AddedTokenMatcher {
 public:
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

  /// A piece of text, or one added token (`id` >= 0).
  struct Piece {
    std::string_view text;
    TokenId id = -1;
  };
  /// With `special` unset, special tokens are text like any other. Precondition: valid UTF-8.
  /// Cost: the text times the longest token at worst, one look at each byte as a rule.
  std::vector<Piece> Split(std::string_view text, bool special) const;

 private:
  /// Of a tree over the tokens' bytes; node 0 is the root.
  struct Node {
    std::int32_t token = -1;        // the first token that ends here
    std::int32_t plain_token = -1;  // the first one that is not special
  };
  std::int32_t Child(std::int32_t node, char byte) const;
  const AddedToken* MatchAt(std::string_view text, std::size_t at, bool special) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;
  std::unordered_map<std::uint64_t, std::int32_t> children_;  // by node << 8 | byte
  std::vector<bool> begins_;                                  // bytes that begin a token
};

}  // namespace holmes::text
