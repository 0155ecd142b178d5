/// Text to token ids and back.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "text/vocab_spec.h"

namespace holmes::text {

struct EncodeOptions {
  /// Match special (control) tokens in the text: for rendered templates. Off for text of a user
  /// that must stay text.
  bool parse_special = false;
  /// Put BOS / EOS where the vocabulary asks for them (never a second BOS when the text already
  /// begins with it).
  bool add_special = false;
};

/// Immutable after Create; every method is thread-safe.
class Tokenizer {
 public:
  /// Errors: kInvalidArgument for a vocabulary that cannot work (merge of unknown tokens, bad
  /// regex, id out of range), kUnimplemented for a model kind that is not there yet; the message
  /// names the place.
  static StatusOr<std::unique_ptr<const Tokenizer>> Create(VocabSpec spec);
  virtual ~Tokenizer() = default;

  /// Never fails: bytes that no token covers become `unk` or nothing, as the reference
  /// implementations do. Cost: linear in the text but for a logarithm inside one pre-token.
  virtual std::vector<TokenId> Encode(std::string_view utf8,
                                      const EncodeOptions& options) const = 0;

  /// The bytes that a token stands for (not necessarily whole characters); the literal text for a
  /// special token. Empty for an id out of range.
  virtual std::string_view TokenBytes(TokenId id) const = 0;
  virtual bool IsSpecial(TokenId id) const = 0;

  int vocab_size() const { return static_cast<int>(spec_.tokens.size()); }
  const VocabSpec& spec() const { return spec_; }

  /// The bytes of all tokens in order; special tokens only with `keep_special`.
  std::string DecodeBytes(std::span<const TokenId> ids, bool keep_special) const;

 protected:
  explicit Tokenizer(VocabSpec spec) : spec_(std::move(spec)) {}
  VocabSpec spec_;
};

}  // namespace holmes::text
