/// A published model, where one is at hand: environment HOLMES_TEST_MODEL names
/// SmolLM2-135M-Instruct.Q4_1.gguf.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tensor/block_type.h"
#include "weights/model_source.h"

namespace holmes::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

std::string ModelPath() {
  const char* const path = std::getenv("HOLMES_TEST_MODEL");
  return path == nullptr ? "" : path;
}

TEST(RealModelTest, SmolLm2OpensWhole) {
  if (ModelPath().empty())
    GTEST_SKIP() << "HOLMES_TEST_MODEL does not name SmolLM2-135M-Instruct.Q4_1.gguf";
  const auto source = ModelSource::Open(ModelPath());
  ASSERT_TRUE(source.ok()) << source.status().ToString();
  const ModelSource& model = **source;
  EXPECT_EQ(model.architecture(), "llama");
  EXPECT_EQ(model.tensors().size(), 272u);
  EXPECT_EQ(model.Number("llama.block_count"), 30);
  EXPECT_EQ(model.Number("llama.attention.head_count_kv"), 3);
  EXPECT_THAT(model.chat_template(), StartsWith("{% for message in messages %}"));
  EXPECT_THAT(model.EndOfGeneration(), ElementsAre(0, 2));
  const TensorRef* const embedding = model.Find("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_THAT(embedding->shape, ElementsAre(49152, 576));
  EXPECT_EQ(embedding->type, tensor::BlockType::kQ8_0);
  const auto vocab = model.Vocab();
  ASSERT_TRUE(vocab.ok()) << vocab.status().ToString();
  EXPECT_EQ(vocab->tokens.size(), 49152u);
  EXPECT_EQ(vocab->merges.size(), 48900u);
  EXPECT_EQ(vocab->bos, 1);
  EXPECT_EQ(vocab->eos, 2);
  EXPECT_FALSE(vocab->add_bos);
}

/// Golden tiny models of tests/model: what a writer of the format other than this project made.
TEST(RealModelTest, FoldersWrittenByTheReferenceLibraryOpen) {
  const std::filesystem::path data = std::filesystem::path(HOLMES_SOURCE_DIR) / "tests/model/data";
  const auto open = [&](const char* name) { return ModelSource::Open((data / name).string()); };
  const auto llama = open("tiny_llama");
  ASSERT_TRUE(llama.ok()) << llama.status().ToString();
  EXPECT_EQ((*llama)->name(), "tiny_llama");
  EXPECT_EQ((*llama)->tensors().size(), 20u);
  EXPECT_EQ((*llama)->Number("rope_theta"), 10000);
  EXPECT_EQ((*llama)->Number("rope_scaling.original_max_position_embeddings"), 32);
  EXPECT_THAT((*llama)->EndOfGeneration(), ElementsAre(0, 2));
  EXPECT_THAT((*llama)->chat_template(), StartsWith("{% for m in messages %}"));
  const auto sharded = open("tiny_llama_sharded");
  ASSERT_TRUE(sharded.ok()) << sharded.status().ToString();
  EXPECT_EQ((*sharded)->tensors().size(), 21u);
  EXPECT_EQ((*sharded)->Find("lm_head.weight")->type, tensor::BlockType::kBF16);
  EXPECT_EQ((*sharded)->Number("rope_scaling.factor"), std::nullopt);
  const auto qwen2 = open("tiny_qwen2");
  ASSERT_TRUE(qwen2.ok()) << qwen2.status().ToString();
  EXPECT_EQ((*qwen2)->architecture(), "qwen2");
  EXPECT_EQ((*qwen2)->Number("rope_theta"), 1e6);
  EXPECT_THAT((*qwen2)->Find("model.layers.0.self_attn.q_proj.bias")->shape, ElementsAre(32));
}

}  // namespace
}  // namespace holmes::weights
