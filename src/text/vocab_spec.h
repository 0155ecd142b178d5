/// A vocabulary as plain data: what every tokenizer file (GGUF metadata, tokenizer.json,
/// tokenizer.model) is read into.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace holmes::text {

enum class TokenizerModel : std::uint8_t { kByteLevelBpe, kSentencePieceBpe, kUnigram, kTiktoken };

/// The values of GGUF's tokenizer.ggml.token_type.
enum class TokenType : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

/// One step of pre-tokenization, applied in order; each step cuts the pieces that the step before
/// left.
struct PreTokenStep {
  enum class Kind : std::uint8_t { kRegexIsolated, kRegexRemoved, kDigitsIndividual, kByteLevel };
  Kind kind = Kind::kRegexIsolated;
  /// For the regex kinds: every match becomes a piece and what lies between matches does too
  /// (isolated). Syntax and meaning as in the `tokenizers` library (see text/regex.h).
  std::string pattern;
};

struct AddedToken {
  TokenId id = -1;
  std::string text;
  bool special = false;  // control: hidden on decode, matched in text only when the caller asks for
                         // special tokens
  bool lstrip = false;
  bool rstrip = false;
  bool single_word = false;
};

struct VocabSpec {
  TokenizerModel model = TokenizerModel::kByteLevelBpe;
  /// Index = id. Byte-level BPE: in the printable byte alphabet of GPT-2 ("Ġthe"); SentencePiece:
  /// with U+2581 for a space.
  std::vector<std::string> tokens;
  /// Empty (all normal) or one per token.
  std::vector<TokenType> types;
  /// SentencePiece: empty or one per token.
  std::vector<float> scores;
  /// BPE, in rank order.
  std::vector<std::pair<std::string, std::string>> merges;
  /// Tokens matched in the text before anything else.
  std::vector<AddedToken> added;
  std::vector<PreTokenStep> pre_tokenizer;
  /// Applied to text outside added tokens. "" or "NFC" or "NFKC".
  std::string normalization;
  bool ignore_merges =
      false;  // a piece that is a whole token is that token, whatever the merges say (Llama 3)
  bool add_space_prefix = false;  // SentencePiece's dummy prefix; byte-level add_prefix_space
  bool byte_fallback = false;
  bool add_bos = false;
  bool add_eos = false;
  std::optional<TokenId> bos, eos, unk, pad;
  /// Every id that ends a generation, as far as the tokenizer file knows (eos, eot, eom ...).
  std::vector<TokenId> end_of_generation;
};

}  // namespace holmes::text
