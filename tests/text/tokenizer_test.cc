// Byte-level BPE against a merger that looks at everything each time, added tokens, BOS, and the
// detokenizer over whole sequences of ids.
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "text/byte_alphabet.h"
#include "text/detokenizer.h"

namespace holmes::text {
namespace {

/// All bytes, no pre-tokenizer: a text is one piece.
VocabSpec ByteVocab() {
  VocabSpec spec;
  spec.tokens.assign(ByteAlphabet().begin(), ByteAlphabet().end());
  return spec;
}

void AddMerge(VocabSpec& spec, const std::string& left, const std::string& right) {
  spec.merges.emplace_back(left, right);
  if (std::find(spec.tokens.begin(), spec.tokens.end(), left + right) == spec.tokens.end())
    spec.tokens.push_back(left + right);
}

TokenId AddSpecial(VocabSpec& spec, AddedToken token) {
  token.id = static_cast<TokenId>(spec.tokens.size());
  spec.tokens.push_back(token.text);
  spec.added.push_back(token);
  return token.id;
}

std::unique_ptr<const Tokenizer> Make(const VocabSpec& spec) {
  auto tokenizer = Tokenizer::Create(spec);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

/// Joins the leftmost pair of the lowest rank until none is left. A pair that is listed twice has
/// its last rank, as in the `tokenizers` library.
std::vector<std::string> NaiveMerge(const VocabSpec& spec, std::string_view text) {
  std::map<std::pair<std::string, std::string>, std::size_t> ranks;
  for (std::size_t i = 0; i < spec.merges.size(); ++i) ranks[spec.merges[i]] = i;
  std::vector<std::string> symbols;
  for (const char c : text) symbols.emplace_back(1, c);
  while (true) {
    std::size_t best_rank = spec.merges.size();
    std::size_t best_at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks.find({symbols[i], symbols[i + 1]});
      if (found == ranks.end() || found->second >= best_rank) continue;
      best_rank = found->second;
      best_at = i;
    }
    if (best_rank == spec.merges.size()) return symbols;
    symbols[best_at] += symbols[best_at + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

TEST(ByteLevelBpeTest, EqualsANaiveMerger) {
  std::mt19937 rng(3);
  for (int round = 0; round < 2000; ++round) {
    VocabSpec spec = ByteVocab();
    std::vector<std::string> words = {"a", "b", "c"};
    for (std::size_t i = rng() % 14; i > 0; --i) {
      const std::string left = words[rng() % words.size()];
      const std::string right = words[rng() % words.size()];
      AddMerge(spec, left, right);
      words.push_back(left + right);
    }
    const auto tokenizer = Make(spec);
    ASSERT_NE(tokenizer, nullptr);
    std::string text;
    for (std::size_t i = rng() % 40; i > 0; --i) text.push_back("abcd"[rng() % 4]);
    std::vector<std::string> got;
    for (const TokenId id : tokenizer->Encode(text, {}))
      got.emplace_back(tokenizer->TokenBytes(id));
    ASSERT_EQ(got, NaiveMerge(spec, text)) << text;
  }
}

TEST(ByteLevelBpeTest, TenMegabytesOfOneLetterEnd) {
  VocabSpec spec = ByteVocab();
  std::string word = "a";
  for (int i = 0; i < 6; ++i, word += word) AddMerge(spec, word, word);
  const auto tokenizer = Make(spec);
#ifdef HOLMES_DEBUG_CHECKS
  constexpr std::size_t kBytes = 1 << 20;
#else
  constexpr std::size_t kBytes = 10 << 20;
#endif
  const std::vector<TokenId> ids = tokenizer->Encode(std::string(kBytes, 'a'), {});
  EXPECT_EQ(ids.size(), kBytes / 64);
}

TEST(ByteLevelBpeTest, InvalidBytesAreReplacedBeforeEncoding) {
  const auto tokenizer = Make(ByteVocab());
  const std::vector<TokenId> ids = tokenizer->Encode("a\xF0\x9F(\xFF", {});
  EXPECT_EQ(tokenizer->DecodeBytes(ids, true), "a\xEF\xBF\xBD(\xEF\xBF\xBD");
}

TEST(ByteLevelBpeTest, AWholePieceIsItsTokenWhenMergesAreIgnored) {
  VocabSpec spec = ByteVocab();
  AddMerge(spec, "a", "b");
  spec.tokens.push_back("abc");  // no merge leads here
  const auto whole = static_cast<TokenId>(spec.tokens.size() - 1);
  EXPECT_EQ(Make(spec)->Encode("abc", {}).size(), 2U);
  spec.ignore_merges = true;
  EXPECT_EQ(Make(spec)->Encode("abc", {}), std::vector<TokenId>{whole});
}

TEST(ByteLevelBpeTest, VocabulariesThatCannotWorkAreRefused) {
  const auto code = [](const VocabSpec& spec) { return Tokenizer::Create(spec).status().code(); };
  EXPECT_EQ(code({}), StatusCode::kInvalidArgument);
  VocabSpec spec = ByteVocab();
  spec.merges.emplace_back("a", "nowhere");
  EXPECT_EQ(code(spec), StatusCode::kInvalidArgument);
  spec = ByteVocab();
  spec.added.push_back({.id = 256, .text = "x"});
  EXPECT_EQ(code(spec), StatusCode::kInvalidArgument);
  spec.added[0].id = -1;
  EXPECT_EQ(code(spec), StatusCode::kInvalidArgument);
  spec = ByteVocab();
  spec.types.resize(3);
  EXPECT_EQ(code(spec), StatusCode::kInvalidArgument);
  spec = ByteVocab();
  spec.normalization = "NFD";
  EXPECT_EQ(code(spec), StatusCode::kUnimplemented);
  for (const TokenizerModel model :
       {TokenizerModel::kSentencePieceBpe, TokenizerModel::kUnigram, TokenizerModel::kTiktoken}) {
    spec = ByteVocab();
    spec.model = model;
    EXPECT_EQ(code(spec), StatusCode::kUnimplemented);
  }
}

TEST(AddedTokensTest, LeftmostThenLongestAndSpecialsOnlyOnRequest) {
  VocabSpec spec = ByteVocab();
  const TokenId end = AddSpecial(spec, {.text = "<end>", .special = true});
  const TokenId end_of = AddSpecial(spec, {.text = "<end>of", .special = true});
  const TokenId tab = AddSpecial(spec, {.text = "\t\t"});
  const auto tokenizer = Make(spec);
  EXPECT_EQ(tokenizer->Encode("<end><end>of\t\t", {.parse_special = true}),
            (std::vector<TokenId>{end, end_of, tab}));
  const std::vector<TokenId> plain = tokenizer->Encode("<end>\t\t", {});
  EXPECT_EQ(plain.size(), 6U);
  EXPECT_EQ(plain.back(), tab);
  EXPECT_EQ(tokenizer->DecodeBytes(std::vector<TokenId>{end, tab}, false), "\t\t");
  EXPECT_EQ(tokenizer->DecodeBytes(std::vector<TokenId>{end, tab}, true), "<end>\t\t");
  EXPECT_TRUE(tokenizer->IsSpecial(end));
  EXPECT_FALSE(tokenizer->IsSpecial(tab));
  EXPECT_FALSE(tokenizer->IsSpecial(-1));
  EXPECT_EQ(tokenizer->TokenBytes(100'000), "");
}

TEST(AddedTokensTest, StripsTheWhiteSpaceBeside) {
  VocabSpec spec = ByteVocab();
  const TokenId left = AddSpecial(spec, {.text = "<l>", .lstrip = true});
  const TokenId right = AddSpecial(spec, {.text = "<r>", .rstrip = true});
  const auto tokenizer = Make(spec);
  // A no-break space and an ideographic space are white space too.
  EXPECT_EQ(tokenizer->Encode("a \xC2\xA0<l> b", {}),
            (std::vector<TokenId>{tokenizer->Encode("a", {})[0],
                                  left,
                                  tokenizer->Encode(" ", {})[0],
                                  tokenizer->Encode("b", {})[0]}));
  EXPECT_EQ(tokenizer->Encode("<r>\n\xE3\x80\x80<l> ", {}),
            (std::vector<TokenId>{right, left, tokenizer->Encode(" ", {})[0]}));
}

TEST(SpecialTokensTest, ExactlyOneBosAndEosWhereAsked) {
  VocabSpec spec = ByteVocab();
  spec.bos = AddSpecial(spec, {.text = "<s>", .special = true});
  spec.eos = AddSpecial(spec, {.text = "</s>", .special = true});
  spec.add_bos = spec.add_eos = true;
  const auto tokenizer = Make(spec);
  const TokenId a = tokenizer->Encode("a", {})[0];
  EXPECT_EQ(tokenizer->Encode("a", {.add_special = true}),
            (std::vector<TokenId>{*spec.bos, a, *spec.eos}));
  EXPECT_EQ(tokenizer->Encode("<s>a", {.parse_special = true, .add_special = true}),
            (std::vector<TokenId>{*spec.bos, a, *spec.eos}));
  EXPECT_EQ(tokenizer->Encode("a", {}), std::vector<TokenId>{a});
}

/// A byte vocabulary with some tokens that are parts of characters and a special one.
VocabSpec FragmentVocab() {
  VocabSpec spec = ByteVocab();
  for (const std::string bytes : {"\xF0\x9F", "\x98\x80", "\xE4\xBD", "\xA0!", "ab\xC3", "\xA9"}) {
    std::string token;
    for (const char c : bytes) token += ByteAlphabet()[static_cast<unsigned char>(c)];
    spec.tokens.push_back(token);
  }
  AddSpecial(spec, {.text = "<s>", .special = true});
  return spec;
}

std::vector<TokenId> RandomIds(std::mt19937& rng, const Tokenizer& tokenizer, std::size_t count) {
  std::vector<TokenId> ids(count);
  for (TokenId& id : ids) {
    const int first = rng() % 4 == 0 ? 0 : 250;  // mostly fragments
    id =
        first + static_cast<TokenId>(rng() % static_cast<unsigned>(tokenizer.vocab_size() - first));
  }
  return ids;
}

std::string Feed(Detokenizer& detokenizer, std::span<const TokenId> ids) {
  std::string out;
  for (const TokenId id : ids) {
    const std::string piece = detokenizer.Push(id);
    EXPECT_TRUE(IsValidUtf8(piece));
    out += piece;
  }
  return out + detokenizer.Flush();
}

TEST(DetokenizerTest, PiecesEqualTheWhole) {
  const auto tokenizer = Make(FragmentVocab());
  std::mt19937 rng(4);
  for (int round = 0; round < 5000; ++round) {
    const std::vector<TokenId> ids = RandomIds(rng, *tokenizer, rng() % 12);
    for (const bool skip_special : {false, true}) {
      Detokenizer detokenizer(*tokenizer, skip_special);
      ASSERT_EQ(Feed(detokenizer, ids),
                ReplaceInvalidUtf8(tokenizer->DecodeBytes(ids, !skip_special)));
    }
  }
}

TEST(DetokenizerTest, BehindAPromptOnlyNewTextComesOut) {
  const auto tokenizer = Make(FragmentVocab());
  std::mt19937 rng(5);
  int completed = 0;
  for (int round = 0; round < 5000; ++round) {
    const std::vector<TokenId> ids = RandomIds(rng, *tokenizer, rng() % 12);
    const std::size_t cut = rng() % (ids.size() + 1);
    const std::span<const TokenId> all(ids);
    Detokenizer detokenizer(*tokenizer, true);
    detokenizer.Prime(all.first(cut));
    const std::string fresh = Feed(detokenizer, all.subspan(cut));
    const std::string whole = ReplaceInvalidUtf8(tokenizer->DecodeBytes(ids, false));
    const std::string prompt = ReplaceInvalidUtf8(tokenizer->DecodeBytes(all.first(cut), false));
    if (whole.starts_with(prompt)) {
      ASSERT_EQ(prompt + fresh, whole);
      continue;
    }
    // The prompt's last character was incomplete and is whole now.
    ++completed;
    ASSERT_TRUE(prompt.ends_with(kReplacement));
    ASSERT_EQ(prompt.substr(0, prompt.size() - kReplacement.size()) + fresh, whole);
  }
  EXPECT_GT(completed, 20);
}

}  // namespace
}  // namespace holmes::text
