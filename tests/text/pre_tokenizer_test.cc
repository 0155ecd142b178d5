// Pieces against the `tokenizers` library, normal forms against Python's unicodedata
// (tools/goldens/make_text_goldens.py).
#include "text/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "text/normalizer.h"
#include "text/regex.h"

namespace holmes::text {
namespace {

namespace json = boost::json;
using Kind = PreTokenStep::Kind;

const json::value& Goldens() {
  static const json::value goldens = [] {
    std::ifstream file(std::filesystem::path(HOLMES_TEST_DATA_DIR) / "text_goldens.json");
    std::stringstream text;
    text << file.rdbuf();
    return json::parse(text.str());
  }();
  return goldens;
}

std::vector<std::size_t> PieceLengths(const PreTokenizer& pre_tokenizer, std::string_view text) {
  std::vector<std::string_view> pieces;
  pre_tokenizer.Split(text, pieces);
  std::vector<std::size_t> out;
  for (const std::string_view piece : pieces) out.push_back(piece.size());
  return out;
}

void ExpectPieces(const std::vector<PreTokenStep>& steps,
                  const json::value& golden,
                  std::string_view what) {
  const auto pre_tokenizer = PreTokenizer::Create(steps);
  ASSERT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.status().ToString();
  const json::array& pieces = golden.at("pieces").as_array();
  ASSERT_GE(pieces.size(), 40U);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::string text(Goldens().at("texts").at(i).as_string());
    EXPECT_EQ(PieceLengths(**pre_tokenizer, text),
              json::value_to<std::vector<std::size_t>>(pieces[i]))
        << what << " on '" << text << "'";
  }
}

TEST(PreTokenizerTest, NamedOnesCutAsTheLibraryDoes) {
  ASSERT_EQ(Goldens().at("named").as_array().size(), 9U);
  for (const json::value& golden : Goldens().at("named").as_array()) {
    const std::string name(golden.at("name").as_string());
    const auto named = PreTokenizerByName(name);
    ASSERT_TRUE(named.ok()) << named.status().ToString();
    ExpectPieces(named->steps, golden, name);
  }
}

TEST(PreTokenizerTest, PatternsMeanWhatTheyMeanInTheLibrary) {
  ASSERT_GT(Goldens().at("patterns").as_array().size(), 30U);
  for (const json::value& golden : Goldens().at("patterns").as_array()) {
    const std::string pattern(golden.at("pattern").as_string());
    const bool removed = golden.at("behavior").as_string() == "removed";
    ExpectPieces(
        {{removed ? Kind::kRegexRemoved : Kind::kRegexIsolated, pattern}}, golden, pattern);
  }
}

TEST(PreTokenizerTest, EveryNameCompilesAndLosesNothing) {
  for (const char* name : {"default",
                           "gpt-2",
                           "phi-2",
                           "mpt",
                           "olmo",
                           "smollm",
                           "starcoder",
                           "refact",
                           "codeshell",
                           "command-r",
                           "llama-bpe",
                           "llama3",
                           "llama-v3",
                           "falcon3",
                           "lfm2",
                           "glm4",
                           "dbrx",
                           "smaug-bpe",
                           "chatglm-bpe",
                           "qwen2",
                           "stablelm2",
                           "megrez",
                           "deepseek-r1-qwen",
                           "qwen35",
                           "seed-coder",
                           "tekken",
                           "gpt-4o",
                           "llama4",
                           "deepseek-v3",
                           "hunyuan-dense",
                           "deepseek-coder",
                           "deepseek-llm"}) {
    const auto named = PreTokenizerByName(name);
    ASSERT_TRUE(named.ok()) << named.status().ToString();
    const auto pre_tokenizer = PreTokenizer::Create(named->steps);
    ASSERT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.status().ToString();
    for (const json::value& text : Goldens().at("texts").as_array()) {
      std::size_t total = 0;
      for (const std::size_t length : PieceLengths(**pre_tokenizer, text.as_string()))
        total += length;
      EXPECT_EQ(total, text.as_string().size()) << name;
    }
  }
}

TEST(PreTokenizerTest, AnUnknownNameIsRefusedWithTheNearest) {
  const auto named = PreTokenizerByName("lama-bpe");
  EXPECT_EQ(named.status().code(), StatusCode::kUnimplemented);
  EXPECT_NE(named.status().message().find("'llama-bpe'"), std::string_view::npos);
}

TEST(PreTokenizerTest, PatternsThatCannotWorkAreRefused) {
  const auto code = [](const char* pattern) { return Regex::Compile(pattern).status().code(); };
  for (const char* pattern : {"(", "[a", "a{2,1}", "\\p{NoSuchThing}", "\xFF", "a\\C"})
    EXPECT_EQ(code(pattern), StatusCode::kInvalidArgument) << pattern;
  // Backwards, recursive or not the same in both libraries.
  for (const char* pattern : {"(?=(?1))(a\\K)",
                              "a\\K",
                              "(?R)a",
                              "(?+1)(a)",
                              "(?P<n>a)",
                              "(*ACCEPT)",
                              "a(?C1)",
                              "(?(1)a|b)",
                              "\\g<1>",
                              "[\\W]",
                              "[[:alpha:]]",
                              "a{1,2}+",
                              "[a-z&&b]",
                              "[\\H]"})
    EXPECT_EQ(code(pattern), StatusCode::kUnimplemented) << pattern;
}

TEST(PreTokenizerTest, AHostilePatternGivesUpAndLosesNothing) {
  for (const char* pattern : {"(.*)*(.*)*(.*)*x", "(a|aa)+b", "(\\w+\\s?)+$"}) {
    const auto pre_tokenizer = PreTokenizer::Create({{Kind::kRegexIsolated, pattern}});
    ASSERT_TRUE(pre_tokenizer.ok());
    const std::string text = std::string(300, 'a') + "!";
    std::size_t total = 0;
    for (const std::size_t length : PieceLengths(**pre_tokenizer, text)) total += length;
    EXPECT_EQ(total, text.size()) << pattern;
  }
}

TEST(NormalizerTest, EqualsPythonsUnicodedata) {
  ASSERT_GT(Goldens().at("forms").as_array().size(), 300U);
  for (const json::value& form : Goldens().at("forms").as_array()) {
    const std::string text(form.at(0).as_string());
    EXPECT_EQ(Normalize(text, NormalForm::kNone), text);
    EXPECT_EQ(Normalize(text, NormalForm::kNfc), form.at(1).as_string());
    EXPECT_EQ(Normalize(text, NormalForm::kNfkc), form.at(2).as_string());
  }
}

TEST(NormalizerTest, ALongRunOfMarksIsSorted) {
  constexpr int kPairs = 300'000;  // hours when neighbours are swapped
  std::string text = "e";
  for (int i = 0; i < kPairs; ++i) text += "\xCD\x85\xCC\xA7";  // classes 240, 202
  std::string want = "\xC8\xA9";                                // e with cedilla
  for (int i = 1; i < kPairs; ++i) want += "\xCC\xA7";
  for (int i = 0; i < kPairs; ++i) want += "\xCD\x85";
  EXPECT_TRUE(Normalize(text, NormalForm::kNfc) == want);
}

}  // namespace
}  // namespace holmes::text
