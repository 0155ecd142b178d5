#include "weights/gguf_vocab.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "text/pre_tokenizer.h"
#include "weights/end_tokens.h"
#include "weights/printable.h"

namespace holmes::weights {
namespace {

using text::TokenizerModel;
using text::TokenType;
using text::VocabSpec;

/// Looks up "tokenizer.ggml.<key>" and words the errors.
class VocabReader {
 public:
  VocabReader(const GgufFile& file, std::string_view file_name)
      : file_(file), file_name_(file_name) {}

  const GgufValue* Find(std::string_view key) const {
    return file_.Find(fmt::format("tokenizer.ggml.{}", key));
  }
  bool Flag(std::string_view key, bool absent) const {
    const GgufValue* const value = Find(key);
    return value == nullptr ? absent : value->Bool().value_or(absent);
  }
  std::string Text(std::string_view key) const {
    const GgufValue* const value = Find(key);
    return std::string(value == nullptr ? std::string_view()
                                        : value->String().value_or(std::string_view()));
  }
  Status Bad(std::string_view key, std::string_view what) const {
    return base::DataLossError(
        fmt::format("{}: tokenizer.ggml.{} {}; convert the model again", file_name_, key, what));
  }

  StatusOr<std::vector<std::string_view>> Tokens() const {
    const GgufValue* const value = Find("tokens");
    if (value == nullptr)
      return base::NotFoundError(
          fmt::format("{}: the file has no vocabulary (tokenizer.ggml.tokens)", file_name_));
    auto tokens = value->Strings();
    if (!tokens) return Bad("tokens", "is not an array of strings");
    if (tokens->empty()) return Bad("tokens", "is empty");
    if (tokens->size() > static_cast<std::size_t>(std::numeric_limits<TokenId>::max()))
      return Bad("tokens", "has more than 2^31 tokens");
    return *std::move(tokens);
  }

  /// Empty when the file has none.
  StatusOr<std::vector<TokenType>> Types(std::size_t num_tokens) const {
    std::vector<TokenType> types;
    const GgufValue* const value = Find("token_type");
    if (value == nullptr) return types;
    const auto numbers = value->Numbers();
    if (!numbers) return Bad("token_type", "is not an array of integers");
    if (numbers->size() != num_tokens)
      return Bad("token_type",
                 fmt::format("has {} entries for {} tokens", numbers->size(), num_tokens));
    types.reserve(num_tokens);
    for (std::size_t i = 0; i < numbers->size(); ++i) {
      const double number = (*numbers)[i];
      if (!(number >= 0 && number <= 6))
        return Bad("token_type", fmt::format("is {} for token {}, 1 to 6 are known", number, i));
      types.push_back(number < 1
                          ? TokenType::kNormal
                          : static_cast<TokenType>(static_cast<int>(number)));  // 0: undefined
    }
    return types;
  }

  /// Empty when the file has no such id; converters write 2^32 - 1 for "none".
  StatusOr<std::optional<TokenId>> Id(std::string_view key, std::size_t num_tokens) const {
    const GgufValue* const value = Find(key);
    if (value == nullptr) return std::optional<TokenId>();
    const auto id = value->Integer();
    if (!id) return Bad(key, "is not an integer");
    if (*id == -1 || *id == std::numeric_limits<std::uint32_t>::max())
      return std::optional<TokenId>();
    if (*id < 0 || static_cast<std::uint64_t>(*id) >= num_tokens) {
      return Bad(key, fmt::format("is {}, the vocabulary has ids 0 to {}", *id, num_tokens - 1));
    }
    return std::optional<TokenId>(static_cast<TokenId>(*id));
  }

  StatusOr<std::vector<std::pair<std::string, std::string>>> Merges() const {
    std::vector<std::pair<std::string, std::string>> merges;
    const GgufValue* const value = Find("merges");
    if (value == nullptr) return merges;
    const auto lines = value->Strings();
    if (!lines) return Bad("merges", "is not an array of strings");
    merges.reserve(lines->size());
    for (std::size_t i = 0; i < lines->size(); ++i) {
      const std::string_view line = (*lines)[i];
      const std::size_t space = line.find(' ');
      if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
          line.find(' ', space + 1) != std::string_view::npos) {
        return Bad(
            "merges",
            fmt::format("entry {} is {}, two tokens with one space between them are expected",
                        i,
                        Quoted(line)));
      }
      merges.emplace_back(line.substr(0, space), line.substr(space + 1));
    }
    return merges;
  }

  StatusOr<std::vector<float>> Scores(std::size_t num_tokens) const {
    std::vector<float> scores;
    const GgufValue* const value = Find("scores");
    if (value == nullptr) return scores;
    const auto numbers = value->Numbers();
    if (!numbers) return Bad("scores", "is not an array of numbers");
    if (numbers->size() != num_tokens)
      return Bad("scores",
                 fmt::format("has {} entries for {} tokens", numbers->size(), num_tokens));
    scores.assign(numbers->begin(), numbers->end());
    return scores;
  }

  StatusOr<std::vector<TokenId>> EndIds(std::span<const std::string_view> tokens,
                                        std::span<const TokenType> types) const {
    std::vector<TokenId> ids;
    for (const std::string_view key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
      HOLMES_ASSIGN_OR_RETURN(const std::optional<TokenId> id, Id(key, tokens.size()));
      if (id) ids.push_back(*id);
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (types[i] == TokenType::kControl && IsWellKnownEndText(tokens[i]))
        ids.push_back(static_cast<TokenId>(i));
    }
    return SortedUnique(std::move(ids));
  }

 private:
  const GgufFile& file_;
  std::string_view file_name_;
};

StatusOr<TokenizerModel> ModelByName(std::string_view name, std::string_view file_name) {
  if (name == "gpt2") return TokenizerModel::kByteLevelBpe;
  if (name == "llama") return TokenizerModel::kSentencePieceBpe;
  if (name == "t5") return TokenizerModel::kUnigram;
  return base::UnimplementedError(
      fmt::format("{}: tokenizer.ggml.model {} is not supported; gpt2, llama and t5 are",
                  file_name,
                  Quoted(name)));
}

/// Vocabularies whose text begins with BOS where the file does not say otherwise, as their
/// reference tokenizers have it.
bool BeginsWithBos(std::string_view pre) {
  static constexpr std::array<std::string_view, 5> kNames = {
      "llama3", "llama-v3", "llama-bpe", "falcon3", "tekken"};
  return std::find(kNames.begin(), kNames.end(), pre) != kNames.end();
}

std::vector<text::AddedToken> AddedTokens(std::span<const std::string_view> tokens,
                                          std::span<const TokenType> types) {
  std::vector<text::AddedToken> added;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] != TokenType::kControl && types[i] != TokenType::kUserDefined) continue;
    if (tokens[i].empty()) continue;  // matches nothing
    added.push_back({.id = static_cast<TokenId>(i),
                     .text = std::string(tokens[i]),
                     .special = types[i] == TokenType::kControl});
  }
  return added;
}

Status ReadIds(const VocabReader& reader, VocabSpec& spec) {
  const std::size_t num_tokens = spec.tokens.size();
  HOLMES_ASSIGN_OR_RETURN(spec.bos, reader.Id("bos_token_id", num_tokens));
  HOLMES_ASSIGN_OR_RETURN(spec.eos, reader.Id("eos_token_id", num_tokens));
  HOLMES_ASSIGN_OR_RETURN(spec.unk, reader.Id("unknown_token_id", num_tokens));
  HOLMES_ASSIGN_OR_RETURN(spec.pad, reader.Id("padding_token_id", num_tokens));
  if (spec.model == TokenizerModel::kSentencePieceBpe && num_tokens > 2) {
    // SentencePiece's own numbering, which older converters left out.
    if (reader.Find("bos_token_id") == nullptr) spec.bos = 1;
    if (reader.Find("eos_token_id") == nullptr) spec.eos = 2;
    if (reader.Find("unknown_token_id") == nullptr) spec.unk = 0;
  }
  return OkStatus();
}

}  // namespace

StatusOr<VocabSpec> ReadGgufVocab(const GgufFile& file, std::string_view file_name) {
  const VocabReader reader(file, file_name);
  HOLMES_ASSIGN_OR_RETURN(const std::vector<std::string_view> tokens, reader.Tokens());
  VocabSpec spec;
  HOLMES_ASSIGN_OR_RETURN(spec.model, ModelByName(reader.Text("model"), file_name));
  spec.tokens.assign(tokens.begin(), tokens.end());
  HOLMES_ASSIGN_OR_RETURN(spec.types, reader.Types(tokens.size()));
  HOLMES_ASSIGN_OR_RETURN(spec.scores, reader.Scores(tokens.size()));
  spec.added = AddedTokens(tokens, spec.types);
  HOLMES_RETURN_IF_ERROR(ReadIds(reader, spec));
  const std::string pre = reader.Text("pre");
  const bool sentence_piece = spec.model != TokenizerModel::kByteLevelBpe;
  if (!sentence_piece) {
    HOLMES_ASSIGN_OR_RETURN(spec.merges, reader.Merges());
    auto named = text::PreTokenizerByName(pre.empty() ? "default" : pre);
    if (!named.ok()) return named.status().WithContext(file_name);
    spec.pre_tokenizer = std::move(named->steps);
    spec.normalization = std::move(named->normalization);
    spec.ignore_merges = named->ignore_merges;
  }
  spec.byte_fallback =
      std::find(spec.types.begin(), spec.types.end(), TokenType::kByte) != spec.types.end();
  spec.add_space_prefix = reader.Flag("add_space_prefix", sentence_piece);
  spec.add_bos =
      reader.Flag("add_bos_token", sentence_piece || BeginsWithBos(pre)) && spec.bos.has_value();
  spec.add_eos = reader.Flag("add_eos_token", false) && spec.eos.has_value();
  HOLMES_ASSIGN_OR_RETURN(spec.end_of_generation, reader.EndIds(tokens, spec.types));
  if (spec.eos) spec.end_of_generation.push_back(*spec.eos);
  spec.end_of_generation = SortedUnique(std::move(spec.end_of_generation));
  return spec;
}

StatusOr<std::vector<TokenId>> ReadGgufEndIds(const GgufFile& file, std::string_view file_name) {
  const VocabReader reader(file, file_name);
  if (reader.Find("tokens") == nullptr) return std::vector<TokenId>();
  HOLMES_ASSIGN_OR_RETURN(const std::vector<std::string_view> tokens, reader.Tokens());
  HOLMES_ASSIGN_OR_RETURN(const std::vector<TokenType> types, reader.Types(tokens.size()));
  return reader.EndIds(tokens, types);
}

}  // namespace holmes::weights
