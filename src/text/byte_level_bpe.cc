#include "text/byte_level_bpe.h"

#include <fmt/format.h>

#include <utility>

#include "text/byte_alphabet.h"
#include "text/utf8.h"

namespace holmes::text {
namespace {

constexpr std::size_t kMaxMerges = std::size_t{1} << 26;

NormalForm FormByName(std::string_view name) {
  if (name == "NFC") return NormalForm::kNfc;
  return name == "NFKC" ? NormalForm::kNfkc : NormalForm::kNone;
}

}  // namespace

ByteLevelBpe::ByteLevelBpe(VocabSpec spec) : Tokenizer(std::move(spec)) {}

StatusOr<std::unique_ptr<const Tokenizer>> ByteLevelBpe::Create(VocabSpec spec) {
  if (spec.tokens.empty()) return base::InvalidArgumentError("the vocabulary has no tokens");
  if (!spec.types.empty() && spec.types.size() != spec.tokens.size()) {
    return base::InvalidArgumentError(fmt::format(
        "the vocabulary has {} tokens, but {} token types", spec.tokens.size(), spec.types.size()));
  }
  if (!spec.normalization.empty() && spec.normalization != "NFC" && spec.normalization != "NFKC") {
    return base::UnimplementedError(fmt::format(
        "normalization '{}' is not supported; supported: NFC, NFKC", spec.normalization));
  }
  std::unique_ptr<ByteLevelBpe> out(new ByteLevelBpe(std::move(spec)));
  HOLMES_RETURN_IF_ERROR(out->BuildTables());
  HOLMES_RETURN_IF_ERROR(out->AddMerges());
  out->form_ = FormByName(out->spec_.normalization);
  HOLMES_ASSIGN_OR_RETURN(out->pre_tokenizer_, PreTokenizer::Create(out->spec_.pre_tokenizer));
  return std::unique_ptr<const Tokenizer>(std::move(out));
}

Status ByteLevelBpe::BuildTables() {
  const std::size_t n = spec_.tokens.size();
  bytes_.resize(n);
  special_.assign(n, false);
  std::vector<bool> literal(n, false);  // stands for its own text, not for the alphabet's bytes
  for (std::size_t i = 0; i < spec_.types.size(); ++i) {
    special_[i] = spec_.types[i] == TokenType::kControl || spec_.types[i] == TokenType::kUnknown;
    literal[i] = special_[i] || spec_.types[i] == TokenType::kUserDefined;
  }
  for (const AddedToken& token : spec_.added) {
    if (token.id < 0 || static_cast<std::size_t>(token.id) >= n) {
      return base::InvalidArgumentError(fmt::format(
          "added token '{}' has the id {}, outside the vocabulary of {}", token.text, token.id, n));
    }
    if (token.single_word)
      return base::UnimplementedError(fmt::format(
          "added token '{}' matches whole words only, which is not supported", token.text));
    literal[static_cast<std::size_t>(token.id)] = true;
    special_[static_cast<std::size_t>(token.id)] =
        special_[static_cast<std::size_t>(token.id)] || token.special;
  }
  for (std::size_t i = 0; i < n; ++i) {
    auto decoded = literal[i] ? std::nullopt : BytesOfAlphabet(spec_.tokens[i]);
    bytes_[i] = decoded ? *std::move(decoded) : spec_.tokens[i];
  }
  id_of_bytes_.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (!literal[i] && !bytes_[i].empty())
      id_of_bytes_.try_emplace(bytes_[i], static_cast<TokenId>(i));
  }
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const auto found = id_of_bytes_.find(std::string_view(&c, 1));
    id_of_byte_[byte] = found == id_of_bytes_.end() ? spec_.unk.value_or(-1) : found->second;
  }
  added_ = std::make_unique<const AddedTokenMatcher>(spec_.added);
  return OkStatus();
}

Status ByteLevelBpe::AddMerges() {
  std::unordered_map<std::string_view, TokenId> id_of_text;
  id_of_text.reserve(spec_.tokens.size());
  for (std::size_t i = 0; i < spec_.tokens.size(); ++i)
    id_of_text.try_emplace(spec_.tokens[i], static_cast<TokenId>(i));
  if (spec_.merges.size() > kMaxMerges) {
    return base::InvalidArgumentError(fmt::format(
        "the vocabulary has {} merges; {} are allowed", spec_.merges.size(), kMaxMerges));
  }
  merges_ = MergeTable(spec_.merges.size());
  for (std::size_t rank = 0; rank < spec_.merges.size(); ++rank) {
    const auto& [left, right] = spec_.merges[rank];
    const auto left_id = id_of_text.find(left);
    const auto right_id = id_of_text.find(right);
    const auto result = id_of_text.find(left + right);
    if (left_id == id_of_text.end() || right_id == id_of_text.end() || result == id_of_text.end()) {
      return base::InvalidArgumentError(fmt::format(
          "merge {} joins '{}' and '{}', but one of them or their join is not in the vocabulary",
          rank,
          left,
          right));
    }
    merges_.Insert(
        left_id->second, right_id->second, static_cast<std::int32_t>(rank), result->second);
  }
  return OkStatus();
}

std::vector<TokenId> ByteLevelBpe::Encode(std::string_view utf8,
                                          const EncodeOptions& options) const {
  std::string replaced;
  if (!IsValidUtf8(utf8)) {
    replaced = ReplaceInvalidUtf8(utf8);
    utf8 = replaced;
  }
  std::vector<TokenId> out;
  out.reserve(utf8.size() / 3 + 2);
  for (const AddedTokenMatcher::Piece& piece : added_->Split(utf8, options.parse_special)) {
    if (piece.id >= 0) {
      out.push_back(piece.id);
    } else {
      EncodeText(piece.text, out);
    }
  }
  if (!options.add_special) return out;
  if (spec_.add_bos && spec_.bos && (out.empty() || out.front() != *spec_.bos))
    out.insert(out.begin(), *spec_.bos);
  if (spec_.add_eos && spec_.eos) out.push_back(*spec_.eos);
  return out;
}

void ByteLevelBpe::EncodeText(std::string_view text, std::vector<TokenId>& out) const {
  std::string prepared = Normalize(text, form_);
  if (spec_.add_space_prefix && !prepared.empty() && prepared[0] != ' ')
    prepared.insert(prepared.begin(), ' ');
  std::vector<std::string_view> pieces;
  pre_tokenizer_->Split(prepared, pieces);
  std::vector<TokenId> symbols;
  for (const std::string_view piece : pieces) EncodePiece(piece, symbols, out);
}

void ByteLevelBpe::EncodePiece(std::string_view piece,
                               std::vector<TokenId>& symbols,
                               std::vector<TokenId>& out) const {
  if (spec_.ignore_merges || piece.size() == 1) {
    const auto whole = id_of_bytes_.find(piece);
    if (whole != id_of_bytes_.end()) {
      out.push_back(whole->second);
      return;
    }
  }
  symbols.clear();
  for (const char c : piece) {
    const TokenId id = id_of_byte_[static_cast<unsigned char>(c)];
    if (id >= 0) symbols.push_back(id);
  }
  merges_.Apply(symbols);
  out.insert(out.end(), symbols.begin(), symbols.end());
}

std::string_view ByteLevelBpe::TokenBytes(TokenId id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= bytes_.size()) return {};
  return bytes_[static_cast<std::size_t>(id)];
}

bool ByteLevelBpe::IsSpecial(TokenId id) const {
  return id >= 0 && static_cast<std::size_t>(id) < special_.size() &&
         special_[static_cast<std::size_t>(id)];
}

}  // namespace holmes::text
