// Real vocabularies against the token ids that come with them.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "weights/model_source.h"

namespace holmes::text {
namespace {

std::filesystem::path SharedDir() {
  if (const char* dir = std::getenv("HOLMES_SHARED_DIR")) return dir;
  return std::filesystem::path(HOLMES_SOURCE_DIR) / ".." / "shared";
}

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

std::vector<std::string> SplitBy(const std::string& text, const std::string& separator) {
  std::vector<std::string> out;
  std::size_t at = 0;
  for (std::size_t found = 0; (found = text.find(separator, at)) != std::string::npos;
       at = found + separator.size())
    out.push_back(text.substr(at, found - at));
  out.push_back(text.substr(at));
  return out;
}

class VocabFileTest : public testing::TestWithParam<const char*> {};

TEST_P(VocabFileTest, GivesExactlyTheListedIds) {
  const std::filesystem::path file =
      SharedDir() / "data" / "vocab" / ("ggml-vocab-" + std::string(GetParam()) + ".gguf");
  if (!std::filesystem::exists(file))
    GTEST_SKIP() << "vocabulary files are not beside this checkout (" << file << ")";
  auto source = weights::ModelSource::Open(file.string());
  ASSERT_TRUE(source.ok()) << source.status().ToString();
  auto spec = (*source)->Vocab();
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  auto tokenizer = Tokenizer::Create(*std::move(spec));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  const std::vector<std::string> texts =
      SplitBy(ReadAll(file.string() + ".inp"), "\n__ggml_vocab_test__\n");
  const std::vector<std::string> lines = SplitBy(ReadAll(file.string() + ".out"), "\n");
  ASSERT_GE(lines.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::vector<TokenId> want;
    std::istringstream numbers(lines[i]);
    for (TokenId id; numbers >> id;) want.push_back(id);
    const std::vector<TokenId> got = (*tokenizer)->Encode(texts[i], {});
    EXPECT_EQ(got, want) << "text " << i << ": '" << texts[i] << "'";
    if ((*tokenizer)->spec().normalization.empty()) {
      EXPECT_EQ((*tokenizer)->DecodeBytes(got, true), texts[i]);
    }
  }
}

// Ids by the `tokenizers` library (tools/goldens/make_smollm2_goldens.py).
TEST(SmolLm2Test, GivesTheLibrarysIds) {
  const char* model = std::getenv("HOLMES_TEST_MODEL");
  if (model == nullptr || !std::string_view(model).ends_with(".gguf"))
    GTEST_SKIP() << "HOLMES_TEST_MODEL does not name SmolLM2's GGUF file";
  auto source = weights::ModelSource::Open(model);
  ASSERT_TRUE(source.ok()) << source.status().ToString();
  auto spec = (*source)->Vocab();
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  const auto tokenizer = Tokenizer::Create(*std::move(spec));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  const boost::json::value goldens = boost::json::parse(
      ReadAll(std::filesystem::path(HOLMES_TEST_DATA_DIR) / "smollm2_goldens.json"));
  ASSERT_GT(goldens.as_array().size(), 150U);
  for (const boost::json::value& golden : goldens.as_array()) {
    const std::string text(golden.at(0).as_string());
    const auto want = boost::json::value_to<std::vector<TokenId>>(golden.at(1));
    EXPECT_EQ((*tokenizer)->Encode(text, {.parse_special = true}), want) << "'" << text << "'";
    EXPECT_EQ((*tokenizer)->DecodeBytes(want, true), text);
  }
}

INSTANTIATE_TEST_SUITE_P(Files,
                         VocabFileTest,
                         testing::Values("gpt-2", "llama-bpe", "qwen2", "deepseek-llm"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace holmes::text
