#include "weights/gguf_vocab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weights/gguf_builder.h"

namespace holmes::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

StatusOr<text::VocabSpec> Read(const GgufBuilder& builder) {
  const std::string bytes = builder.Build();
  const auto file = GgufFile::Parse(BytesOf(bytes), "x.gguf");
  if (!file.ok()) return file.status();
  return ReadGgufVocab(*file, "x.gguf");
}

GgufBuilder Bpe(std::string_view pre) {
  GgufBuilder builder;
  builder.String("tokenizer.ggml.model", "gpt2")
      .String("tokenizer.ggml.pre", pre)
      .Strings("tokenizer.ggml.tokens", {"a", "b", "ab", "<s>"});
  return builder;
}

TEST(GgufVocabTest, ReadsByteLevelBpe) {
  const auto spec = Read(SmallGguf());
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  EXPECT_EQ(spec->model, text::TokenizerModel::kByteLevelBpe);
  EXPECT_THAT(spec->tokens, ElementsAre("a", "b", "ab", "<|im_end|>", "<think>", "</s>"));
  EXPECT_THAT(spec->merges, ElementsAre(Pair("a", "b")));
  ASSERT_EQ(spec->added.size(), 2u);
  EXPECT_EQ(spec->added[0].text, "<|im_end|>");
  EXPECT_TRUE(spec->added[0].special);
  EXPECT_EQ(spec->added[1].id, 4);
  EXPECT_FALSE(spec->added[1].special);
  EXPECT_EQ(spec->bos, 0);
  EXPECT_EQ(spec->eos, 2);
  EXPECT_EQ(spec->unk, std::nullopt);
  EXPECT_TRUE(spec->add_bos);
  EXPECT_FALSE(spec->add_eos);
  EXPECT_FALSE(spec->add_space_prefix);
  EXPECT_FALSE(spec->ignore_merges);
  EXPECT_THAT(spec->end_of_generation, ElementsAre(2, 3));
}

TEST(GgufVocabTest, Llama3TakesWholeTokensAndBeginsWithBos) {
  auto spec = Read(Bpe("llama-bpe").Uint32("tokenizer.ggml.bos_token_id", 3));
  ASSERT_TRUE(spec.ok());
  EXPECT_TRUE(spec->ignore_merges);
  EXPECT_TRUE(spec->add_bos);
  spec = Read(Bpe("llama-bpe")
                  .Uint32("tokenizer.ggml.bos_token_id", 3)
                  .Bool("tokenizer.ggml.add_bos_token", false));
  ASSERT_TRUE(spec.ok());
  EXPECT_FALSE(spec->add_bos);
  spec = Read(Bpe("llama-bpe"));
  ASSERT_TRUE(spec.ok());
  EXPECT_FALSE(spec->add_bos);  // there is none to add
}

TEST(GgufVocabTest, ReadsSentencePieceWithItsDefaults) {
  GgufBuilder builder;
  builder.String("tokenizer.ggml.model", "llama")
      .Strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "<0x0A>"})
      .Int32s("tokenizer.ggml.token_type", {2, 3, 3, 6});
  const auto spec = Read(builder);
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  EXPECT_EQ(spec->model, text::TokenizerModel::kSentencePieceBpe);
  EXPECT_EQ(spec->bos, 1);
  EXPECT_EQ(spec->eos, 2);
  EXPECT_EQ(spec->unk, 0);
  EXPECT_TRUE(spec->add_bos);
  EXPECT_TRUE(spec->add_space_prefix);
  EXPECT_TRUE(spec->byte_fallback);
  EXPECT_THAT(spec->end_of_generation, ElementsAre(2));
}

TEST(GgufVocabTest, RefusesWhatDoesNotAgree) {
  const auto code = [](const GgufBuilder& builder) { return Read(builder).status().code(); };
  EXPECT_EQ(code(GgufBuilder()), StatusCode::kNotFound);
  EXPECT_EQ(code(Bpe("gpt-2")), StatusCode::kOk);
  EXPECT_EQ(code(Bpe("gpt-2").Int32s("tokenizer.ggml.token_type", {1, 1})), StatusCode::kDataLoss);
  EXPECT_EQ(code(Bpe("gpt-2").Int32s("tokenizer.ggml.token_type", {1, 1, 1, 9})),
            StatusCode::kDataLoss);
  EXPECT_EQ(code(Bpe("gpt-2").Int32s("tokenizer.ggml.scores", {1})), StatusCode::kDataLoss);
  for (const std::string_view merge : {"ab", " a", "a ", "a  b", "", "a b c"}) {
    EXPECT_EQ(code(Bpe("gpt-2").Strings("tokenizer.ggml.merges", {std::string(merge)})),
              StatusCode::kDataLoss)
        << merge;
  }
  EXPECT_EQ(code(Bpe("gpt-2").Int32s("tokenizer.ggml.merges", {1})), StatusCode::kDataLoss);
  EXPECT_EQ(code(Bpe("gpt-2").Uint32("tokenizer.ggml.eos_token_id", 4)), StatusCode::kDataLoss);
  EXPECT_EQ(code(Bpe("gpt-2").String("tokenizer.ggml.eos_token_id", "2")), StatusCode::kDataLoss);
  EXPECT_EQ(code(Bpe("gpt-2").Uint32("tokenizer.ggml.padding_token_id", 0xffffffffu)),
            StatusCode::kOk);  // "none"
  EXPECT_EQ(code(GgufBuilder()
                     .String("tokenizer.ggml.model", "bert")
                     .Strings("tokenizer.ggml.tokens", {"a"})),
            StatusCode::kUnimplemented);
  EXPECT_EQ(code(GgufBuilder()
                     .String("tokenizer.ggml.model", "gpt2")
                     .Strings("tokenizer.ggml.tokens", {})),
            StatusCode::kDataLoss);
}

TEST(GgufVocabTest, EndIdsNeedNoVocabulary) {
  const std::string bytes = GgufBuilder().Uint32("tokenizer.ggml.eos_token_id", 4).Build();
  const auto file = GgufFile::Parse(BytesOf(bytes), "x.gguf");
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(ReadGgufEndIds(*file, "x.gguf").value(), IsEmpty());
}

}  // namespace
}  // namespace holmes::weights
