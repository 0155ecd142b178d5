#include "weights/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "text/tokenizer.h"

namespace holmes::weights {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

const std::string& TinyTokenizer() {
  static const std::string text = ReadAll(std::filesystem::path(HOLMES_SOURCE_DIR) /
                                          "tests/model/data/tiny_llama/tokenizer.json");
  return text;
}

void ExpectIds(const std::string& tokenizer_json, const std::string& goldens) {
  auto spec = ReadTokenizerJson(tokenizer_json);
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  auto tokenizer = text::Tokenizer::Create(*std::move(spec));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  const json::value parsed = json::parse(goldens);
  ASSERT_GT(parsed.as_array().size(), 100U);
  for (const json::value& golden : parsed.as_array()) {
    const std::string text(golden.at("text").get_string());
    const auto want = json::value_to<std::vector<TokenId>>(golden.at("ids"));
    // The library matches special tokens in any text; so does parse_special.
    EXPECT_EQ((*tokenizer)->Encode(text, {.parse_special = true}), want) << "'" << text << "'";
    EXPECT_EQ((*tokenizer)->DecodeBytes(want, true), text);
  }
}

TEST(TokenizerJsonTest, GivesTheLibrarysIds) {
  ExpectIds(TinyTokenizer(),
            ReadAll(std::filesystem::path(HOLMES_TEST_DATA_DIR) / "tokenizer_goldens.json"));
}

TEST(TokenizerJsonTest, GivesTheLibrarysIdsOfAnotherFile) {
  const char* file = std::getenv("HOLMES_TOKENIZER_JSON");
  const char* goldens = std::getenv("HOLMES_TOKENIZER_GOLDENS");
  if (file == nullptr || goldens == nullptr)
    GTEST_SKIP() << "HOLMES_TOKENIZER_JSON and HOLMES_TOKENIZER_GOLDENS name no files";
  ExpectIds(ReadAll(file), ReadAll(goldens));
}

/// The tiny file with one value replaced.
Status ReadChanged(std::initializer_list<std::string_view> path, json::value value) {
  json::value root = json::parse(TinyTokenizer());
  json::value* at = &root;
  for (const std::string_view key : path) at = &at->as_object()[key];
  *at = std::move(value);
  return ReadTokenizerJson(json::serialize(root)).status();
}

TEST(TokenizerJsonTest, UnsupportedStepsAreNamed) {
  const auto expect = [](const Status& status, const char* name) {
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << status.ToString();
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  };
  expect(ReadChanged({"model", "type"}, "WordPiece"), "WordPiece");
  expect(ReadChanged({"model", "byte_fallback"}, true), "byte_fallback");
  expect(ReadChanged({"model", "end_of_word_suffix"}, "</w>"), "end_of_word_suffix");
  expect(ReadChanged({"normalizer"}, json::parse(R"({"type": "Lowercase"})")), "Lowercase");
  expect(ReadChanged({"pre_tokenizer"}, json::parse(R"({"type": "Metaspace"})")), "Metaspace");
  expect(ReadChanged({"post_processor"}, json::parse(R"({"type": "BertProcessing"})")),
         "BertProcessing");
  expect(ReadChanged({"decoder"}, json::parse(R"({"type": "WordPiece"})")), "WordPiece");
  expect(ReadChanged({"model", "dropout"}, 0.1), "dropout");
  expect(ReadChanged({"pre_tokenizer"}, json::parse(R"({"type": "Sequence", "pretokenizers": [
                       {"type": "ByteLevel"}, {"type": "Digits", "individual_digits": true}]})")),
         "Digits");
  expect(ReadChanged({"pre_tokenizer"}, json::parse(R"({"type": "Sequence", "pretokenizers": [
                       {"type": "Digits", "individual_digits": true},
                       {"type": "ByteLevel", "add_prefix_space": true}]})")),
         "add_prefix_space");
}

json::value SmallFile(std::string_view vocab, std::string_view merges, std::string_view more = "") {
  return json::parse(std::string(R"({"pre_tokenizer": {"type": "ByteLevel"}, "model": {"type":)") +
                     R"("BPE", "vocab": )" + std::string(vocab) + R"(, "merges": )" +
                     std::string(merges) + std::string(more) + "}}");
}

TEST(TokenizerJsonTest, AFewTokensDoNotMakeAHugeVocabulary) {
  EXPECT_TRUE(ReadTokenizerJson(json::serialize(SmallFile(R"({"a": 1000})", "[]"))).ok());
  const auto spec = ReadTokenizerJson(json::serialize(SmallFile(R"({"a": 16777215})", "[]")));
  EXPECT_EQ(spec.status().code(), StatusCode::kDataLoss);
}

TEST(TokenizerJsonTest, UnknownTokensThatFuseAreRefusedUnlessThereAreNone) {
  const auto spec =
      ReadTokenizerJson(json::serialize(SmallFile(R"({"a": 0})", "[]", R"(, "fuse_unk": true)")));
  EXPECT_EQ(spec.status().code(), StatusCode::kUnimplemented);
  EXPECT_TRUE(ReadChanged({"model", "fuse_unk"}, true).ok());
}

TEST(TokenizerJsonTest, MergesAreReadAsTheLibraryReadsThem) {
  // Values from the library: a merge that is listed twice has its last rank; a merges.txt's first
  // line is no merge.
  const std::string_view vocab = R"({"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4})";
  const auto encode = [&](std::string_view merges) {
    const auto spec = ReadTokenizerJson(json::serialize(SmallFile(vocab, merges)));
    EXPECT_TRUE(spec.ok()) << spec.status().ToString();
    const auto tokenizer = text::Tokenizer::Create(*spec);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
    return (*tokenizer)->Encode("abc", {});
  };
  EXPECT_EQ(encode(R"([["a", "b"], ["b", "c"], ["a", "b"]])"), (std::vector<TokenId>{0, 4}));
  EXPECT_EQ(encode(R"(["#version: 0.2", "a b"])"), (std::vector<TokenId>{3, 2}));
}

TEST(TokenizerJsonTest, BrokenFilesAreErrors) {
  EXPECT_EQ(ReadChanged({"model", "vocab"}, 3).code(), StatusCode::kDataLoss);
  EXPECT_EQ(ReadChanged({"model", "merges"}, json::parse(R"(["ab"])")).code(),
            StatusCode::kDataLoss);
  EXPECT_EQ(ReadChanged({"model", "vocab", "a"}, -1).code(), StatusCode::kDataLoss);
  EXPECT_EQ(ReadChanged({"model", "vocab", "a"}, 4'000'000'000).code(), StatusCode::kDataLoss);
  EXPECT_EQ(ReadChanged({"added_tokens"}, json::parse(R"([{"id": 1}])")).code(),
            StatusCode::kDataLoss);
  for (std::size_t size = 0; size < TinyTokenizer().size(); size += 97)
    EXPECT_FALSE(ReadTokenizerJson(std::string_view(TinyTokenizer()).substr(0, size)).ok());
}

TEST(TokenizerJsonTest, ATemplatePutsBosFirst) {
  json::value root = json::parse(TinyTokenizer());
  root.as_object()["post_processor"] = json::parse(
      R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [], "special_tokens": {"<|im_start|>": {"id": "<|im_start|>", "ids": [1], "tokens": ["<|im_start|>"]}}})");
  const auto spec = ReadTokenizerJson(json::serialize(root));
  ASSERT_TRUE(spec.ok());
  EXPECT_TRUE(spec->add_bos);
  EXPECT_EQ(spec->bos, 1);
  EXPECT_FALSE(spec->add_eos);
  const auto tokenizer = text::Tokenizer::Create(*spec);
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ((*tokenizer)->Encode("", {.add_special = true}), (std::vector<TokenId>{1}));
  // Exactly one BOS where the text already begins with it.
  EXPECT_EQ((*tokenizer)->Encode("<|im_start|>", {.parse_special = true, .add_special = true}),
            (std::vector<TokenId>{1}));
}

}  // namespace
}  // namespace holmes::weights
