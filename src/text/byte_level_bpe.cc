#include "text/byte_level_bpe.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <queue>

#include "text/byte_alphabet.h"
#include "text/utf8.h"

namespace holmes::text {
namespace {

std::uint64_t PairKey(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

bool IsAscii(std::string_view text) {
  return std::all_of(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// The text in the normal form that the vocabulary was made with. Input is valid UTF-8, so only
/// memory could fail it; then it stays as it is.
std::string Normalize(std::string_view text, const std::string& form) {
  if (form.empty() || IsAscii(text)) return std::string(text);
  const int compat = form == "NFKC" ? UTF8PROC_COMPAT : 0;
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()),
                   &result,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | compat));
  if (length < 0) return std::string(text);
  std::string out(reinterpret_cast<const char*>(result), static_cast<std::size_t>(length));
  std::free(result);
  return out;
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
  merges_.reserve(spec_.merges.size());
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
    merges_.try_emplace(PairKey(left_id->second, right_id->second),
                        Merge{static_cast<int>(rank), result->second});
  }
  return OkStatus();
}

const ByteLevelBpe::Merge* ByteLevelBpe::FindMerge(TokenId left, TokenId right) const {
  const auto found = merges_.find(PairKey(left, right));
  return found == merges_.end() ? nullptr : &found->second;
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
  std::string prepared = Normalize(text, spec_.normalization);
  if (spec_.add_space_prefix && !prepared.empty() && prepared[0] != ' ')
    prepared.insert(prepared.begin(), ' ');
  std::vector<std::string_view> pieces;
  pre_tokenizer_->Split(prepared, pieces);
  for (const std::string_view piece : pieces) EncodePiece(piece, out);
}

void ByteLevelBpe::EncodePiece(std::string_view piece, std::vector<TokenId>& out) const {
  if (spec_.ignore_merges || piece.size() == 1) {
    const auto whole = id_of_bytes_.find(piece);
    if (whole != id_of_bytes_.end()) {
      out.push_back(whole->second);
      return;
    }
  }
  // A doubly linked list of symbols; a heap of the merges that neighbours allow, lowest rank first,
  // leftmost of equals. An entry is stale when its neighbours have changed since.
  struct Symbol {
    TokenId id;
    int previous;
    int next;
  };
  struct Candidate {
    int rank;
    int left;
    TokenId left_id, right_id, result;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  for (const char c : piece) {
    const TokenId id = id_of_byte_[static_cast<unsigned char>(c)];
    if (id < 0) continue;
    const int at = static_cast<int>(symbols.size());
    symbols.push_back({id, at - 1, at + 1});
  }
  if (symbols.empty()) return;
  symbols.back().next = -1;
  std::vector<Candidate> storage;
  storage.reserve(symbols.size());
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap(std::greater<>{},
                                                                              std::move(storage));
  const auto offer = [&](int left) {
    if (left < 0) return;
    const int right = symbols[static_cast<std::size_t>(left)].next;
    if (right < 0) return;
    const TokenId left_id = symbols[static_cast<std::size_t>(left)].id;
    const TokenId right_id = symbols[static_cast<std::size_t>(right)].id;
    if (const Merge* merge = FindMerge(left_id, right_id))
      heap.push({merge->rank, left, left_id, right_id, merge->result});
  };
  for (int i = 0; i + 1 < static_cast<int>(symbols.size()); ++i) offer(i);
  while (!heap.empty()) {
    const Candidate best = heap.top();
    heap.pop();
    Symbol& left = symbols[static_cast<std::size_t>(best.left)];
    if (left.id != best.left_id || left.next < 0) continue;
    Symbol& right = symbols[static_cast<std::size_t>(left.next)];
    if (right.id != best.right_id) continue;
    left.id = best.result;
    right.id = -1;  // gone
    left.next = right.next;
    if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].previous = best.left;
    offer(left.previous);
    offer(best.left);
  }
  for (int i = 0; i >= 0; i = symbols[static_cast<std::size_t>(i)].next)
    out.push_back(symbols[static_cast<std::size_t>(i)].id);
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
