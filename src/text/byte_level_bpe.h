/// Byte-level byte pair encoding (Sennrich et al. 2016; bytes as in GPT-2): GPT-2, Llama 3, Qwen,
/// SmolLM and most current vocabularies.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/added_tokens.h"
#include "text/merge_table.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace holmes::text {

class ByteLevelBpe final : public Tokenizer {
 public:
  /// Errors as Tokenizer::Create.
  static StatusOr<std::unique_ptr<const Tokenizer>> Create(VocabSpec spec);

  std::vector<TokenId> Encode(std::string_view utf8, const EncodeOptions& options) const override;
  std::string_view TokenBytes(TokenId id) const override;
  bool IsSpecial(TokenId id) const override;

 private:
  explicit ByteLevelBpe(VocabSpec spec);
  Status BuildTables();
  Status AddMerges();
  void EncodeText(std::string_view text, std::vector<TokenId>& out) const;
  /// `symbols` is scratch memory.
  void EncodePiece(std::string_view piece,
                   std::vector<TokenId>& symbols,
                   std::vector<TokenId>& out) const;

  std::vector<std::string> bytes_;  // of each token
  std::vector<bool> special_;
  std::unordered_map<std::string_view, TokenId>
      id_of_bytes_;  // views into bytes_; ordinary tokens only
  std::array<TokenId, 256> id_of_byte_{};
  MergeTable merges_;
  NormalForm form_ = NormalForm::kNone;
  std::unique_ptr<const PreTokenizer> pre_tokenizer_;
  std::unique_ptr<const AddedTokenMatcher> added_;
};

}  // namespace holmes::text
