#include "text/tokenizer.h"

#include "text/byte_level_bpe.h"

namespace holmes::text {

StatusOr<std::unique_ptr<const Tokenizer>> Tokenizer::Create(VocabSpec spec) {
  switch (spec.model) {
    case TokenizerModel::kByteLevelBpe:
      return ByteLevelBpe::Create(std::move(spec));
    case TokenizerModel::kSentencePieceBpe:
      return base::UnimplementedError(
          "SentencePiece BPE vocabularies are not supported yet; byte-level BPE is");
    case TokenizerModel::kUnigram:
      return base::UnimplementedError(
          "unigram vocabularies are not supported yet; byte-level BPE is");
    case TokenizerModel::kTiktoken:
      return base::UnimplementedError(
          "tiktoken rank files are not supported yet; byte-level BPE is");
  }
  return base::InvalidArgumentError("unknown tokenizer model");
}

std::string Tokenizer::DecodeBytes(std::span<const TokenId> ids, bool keep_special) const {
  std::string out;
  for (const TokenId id : ids) {
    if (keep_special || !IsSpecial(id)) out += TokenBytes(id);
  }
  return out;
}

}  // namespace holmes::text
