#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "weights/gguf_builder.h"
#include "weights/model_source.h"
#include "weights/temp_dir.h"

namespace holmes::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// One float tensor of four elements.
std::string Weights(std::string_view name) {
  const std::string header =
      R"({")" + std::string(name) + R"(":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})";
  return ByteWriter()
      .Put<std::uint64_t>(header.size())
      .Raw(header)
      .Raw(std::string(16, 'w'))
      .bytes();
}

constexpr std::string_view kConfig =
    R"({"model_type":"llama","vocab_size":100,"hidden_size":64,"rms_norm_eps":1e-05,"tie_word_embeddings":true,"hidden_act":"silu",)"
    R"("eos_token_id":[7,5],"rope_theta":500000.0,"rope_scaling":{"factor":8.0,"rope_type":"llama3"},"layers":[1,2,3],"nothing":null})";

StatusCode OpenCode(const TempDir& dir) { return ModelSource::Open(dir.path()).status().code(); }

TEST(HfFolderTest, ReadsConfigAndWeights) {
  const TempDir dir;
  dir.Write("config.json", kConfig);
  dir.Write("generation_config.json", R"({"eos_token_id":9})");
  dir.Write("model.safetensors", Weights("w"));
  const auto source = ModelSource::Open(dir.path() + "/");
  ASSERT_TRUE(source.ok()) << source.status().ToString();
  const ModelSource& model = **source;
  EXPECT_EQ(model.format(), Format::kSafetensors);
  EXPECT_EQ(model.architecture(), "llama");
  EXPECT_EQ(model.Number("hidden_size"), 64);
  EXPECT_EQ(model.Number("rms_norm_eps"), 1e-5);
  EXPECT_EQ(model.Bool("tie_word_embeddings"), true);
  EXPECT_EQ(model.String("hidden_act"), "silu");
  EXPECT_EQ(model.Number("rope_scaling.factor"), 8.0);
  EXPECT_EQ(model.String("rope_scaling.rope_type"), "llama3");
  EXPECT_THAT(*model.Numbers("layers"), ElementsAre(1, 2, 3));
  EXPECT_EQ(model.Number("hidden_act"), std::nullopt);
  EXPECT_EQ(model.Number("absent"), std::nullopt);
  EXPECT_EQ(model.Number("hidden_size.more"), std::nullopt);
  EXPECT_EQ(model.Bool("nothing"), std::nullopt);
  EXPECT_EQ(model.chat_template(), "");
  EXPECT_THAT(model.EndOfGeneration(), ElementsAre(5, 7, 9));
  EXPECT_EQ(model.Vocab().status().code(), StatusCode::kNotFound);
  ASSERT_NE(model.Find("w"), nullptr);
  EXPECT_THAT(model.Find("w")->shape, ElementsAre(2, 2));
}

TEST(HfFolderTest, FindsRotaryKeysInTheNewerLayout) {
  const TempDir dir;
  dir.Write(
      "config.json",
      R"({"model_type":"llama","rope_parameters":{"rope_type":"llama3","rope_theta":1000000.0,"factor":4.0}})");
  dir.Write("model.safetensors", Weights("w"));
  const auto source = ModelSource::Open(dir.path());
  ASSERT_TRUE(source.ok());
  EXPECT_EQ((*source)->Number("rope_theta"), 1e6);
  EXPECT_EQ((*source)->String("rope_scaling.rope_type"), "llama3");
  EXPECT_EQ((*source)->Number("rope_scaling.factor"), 4.0);
}

TEST(HfFolderTest, ChatTemplateComesFromTheFirstPlaceThatHasOne) {
  const TempDir dir;
  dir.Write("config.json", kConfig);
  dir.Write("model.safetensors", Weights("w"));
  const auto chat_template = [&] {
    const auto source = ModelSource::Open(dir.path());
    return source.ok() ? std::string((*source)->chat_template()) : source.status().ToString();
  };
  dir.Write("tokenizer_config.json", R"({"chat_template":"one"})");
  EXPECT_EQ(chat_template(), "one");
  dir.Write(
      "tokenizer_config.json",
      R"({"chat_template":[{"name":"tool_use","template":"tools"},{"name":"default","template":"two"}]})");
  EXPECT_EQ(chat_template(), "two");
  dir.Write("chat_template.jinja", "three");
  EXPECT_EQ(chat_template(), "three");
  dir.Write("tokenizer_config.json", R"({"chat_template":7})");
  EXPECT_EQ(OpenCode(dir), StatusCode::kDataLoss);
}

TEST(HfFolderTest, JoinsShards) {
  const TempDir dir;
  dir.Write("config.json", kConfig);
  dir.Write("model-1.safetensors", Weights("a"));
  EXPECT_EQ(OpenCode(dir), StatusCode::kOk);  // the only file there is the model
  dir.Write("model-2.safetensors", Weights("b"));
  EXPECT_EQ(OpenCode(dir), StatusCode::kNotFound);
  dir.Write(
      "model.safetensors.index.json",
      R"({"metadata":{},"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})");
  const auto source = ModelSource::Open(dir.path());
  ASSERT_TRUE(source.ok()) << source.status().ToString();
  EXPECT_NE((*source)->Find("a"), nullptr);
  EXPECT_NE((*source)->Find("b"), nullptr);
  dir.Write("model-2.safetensors", Weights("a"));
  EXPECT_EQ(OpenCode(dir), StatusCode::kDataLoss);  // in both files
  dir.Write("model-2.safetensors", Weights("c"));
  EXPECT_EQ(OpenCode(dir), StatusCode::kDataLoss);  // announced, not there
  std::filesystem::remove(dir.path() + "/model-2.safetensors");
  EXPECT_EQ(OpenCode(dir), StatusCode::kNotFound);
}

TEST(HfFolderTest, IndexNeverLeavesTheFolder) {
  const TempDir outside;
  const std::string elsewhere = outside.Write("other.safetensors", Weights("a"));
  const TempDir dir;
  dir.Write("config.json", kConfig);
  for (const std::string& file :
       {std::string("../") + std::filesystem::path(outside.path()).filename().string() +
            "/other.safetensors",
        elsewhere,
        std::string(".."),
        std::string(),
        std::string("sub/other.safetensors"),
        std::string("config.json"),
        std::string("a\\\\b.safetensors")}) {
    dir.Write("model.safetensors.index.json", R"({"weight_map":{"a":")" + file + R"("}})");
    EXPECT_EQ(OpenCode(dir), StatusCode::kDataLoss) << file;
  }
  for (const std::string_view index :
       {"", "[]", R"({"weight_map":[]})", R"({"weight_map":{}})", R"({"weight_map":{"a":1}})"}) {
    dir.Write("model.safetensors.index.json", index);
    EXPECT_EQ(OpenCode(dir), StatusCode::kDataLoss) << index;
  }
}

TEST(HfFolderTest, RefusesBadConfigs) {
  const TempDir dir;
  dir.Write("model.safetensors", Weights("w"));
  EXPECT_EQ(OpenCode(dir), StatusCode::kInvalidArgument);  // no config.json
  for (const std::string_view config : {"",
                                        "{",
                                        "[]",
                                        "{}",
                                        R"({"model_type":3})",
                                        R"({"model_type":""})",
                                        R"({"model_type":"llama","eos_token_id":"x"})",
                                        R"({"model_type":"llama","eos_token_id":-1})",
                                        R"({"model_type":"llama","eos_token_id":[1,2.5]})",
                                        R"({"model_type":"llama","eos_token_id":4294967296})"}) {
    dir.Write("config.json", config);
    EXPECT_EQ(OpenCode(dir), StatusCode::kDataLoss) << config;
  }
  dir.Write("config.json", std::string(100000, '['));
  EXPECT_EQ(OpenCode(dir), StatusCode::kDataLoss);
  dir.Write("config.json", std::string(5 << 20, ' '));
  EXPECT_EQ(OpenCode(dir), StatusCode::kResourceExhausted);
  dir.Write("config.json",
            R"({"model_type":"llama","quantization_config":{"quant_method":"gptq"}})");
  const Status status = ModelSource::Open(dir.path()).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("gptq"));
}

TEST(HfFolderTest, EndIdsOutsideTheVocabularyAreLeftOut) {
  const TempDir dir;
  dir.Write("config.json",
            R"({"model_type":"llama","vocab_size":100,"eos_token_id":[99,100,2000]})");
  dir.Write("model.safetensors", Weights("w"));
  const auto source = ModelSource::Open(dir.path());
  ASSERT_TRUE(source.ok());
  EXPECT_THAT((*source)->EndOfGeneration(), ElementsAre(99));
}

TEST(HfFolderTest, NamesWhatIsMissing) {
  const TempDir dir;
  dir.Write("config.json", kConfig);
  EXPECT_EQ(OpenCode(dir), StatusCode::kNotFound);
  dir.Write("pytorch_model.bin", "x");
  EXPECT_EQ(OpenCode(dir), StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace holmes::weights
