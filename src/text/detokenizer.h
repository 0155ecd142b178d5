/// Token ids to text, one id at a time.
#pragma once

#include <span>
#include <string>

#include "base/ids.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace holmes::text {

/// Invariant: the outputs of all Push and the final Flush concatenate to the tokens' bytes decoded
/// as one, invalid ones replaced as in Python; a character is never split over two outputs. One per
/// sample; one thread at a time. Borrows the tokenizer.
class Detokenizer {
 public:
  Detokenizer(const Tokenizer& tokenizer, bool skip_special)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}

  /// Says which ids came before (a prompt), whose text was given out elsewhere. A character that
  /// they leave incomplete comes out whole when what follows completes it; otherwise its U+FFFD
  /// belongs to the prompt's text. Call before the first Push. Cost: a few ids, whatever the
  /// prompt's length.
  void Prime(std::span<const TokenId> ids);

  /// New whole characters; empty while a character is incomplete or for a special token that is
  /// skipped.
  std::string Push(TokenId id) {
    if (skip_special_ && tokenizer_.IsSpecial(id)) return "";
    return stream_.Push(tokenizer_.TokenBytes(id));
  }
  /// U+FFFD for a character that stays incomplete.
  std::string Flush() { return stream_.Flush(); }
  bool holds_bytes() const { return stream_.holds_bytes(); }

 private:
  const Tokenizer& tokenizer_;
  const bool skip_special_;
  Utf8Stream stream_;
};

}  // namespace holmes::text
