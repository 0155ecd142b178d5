#include "weights/model_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "weights/gguf_builder.h"
#include "weights/temp_dir.h"

namespace holmes::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ModelSourceTest, OpensGguf) {
  const TempDir dir;
  const auto source = ModelSource::Open(dir.Write("small.gguf", SmallGguf().Build()));
  ASSERT_TRUE(source.ok()) << source.status().ToString();
  const ModelSource& model = **source;
  EXPECT_EQ(model.format(), Format::kGguf);
  EXPECT_EQ(model.architecture(), "llama");
  EXPECT_EQ(model.name(), "small");
  ASSERT_EQ(model.tensors().size(), 2u);
  const TensorRef* const weight = model.Find("w.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_THAT(weight->shape, ElementsAre(3, 32));
  EXPECT_EQ(weight->type, tensor::BlockType::kQ8_0);
  EXPECT_EQ(weight->bytes.size(), 3u * 34);
  EXPECT_EQ(model.Find("absent"), nullptr);
  EXPECT_EQ(model.Number("llama.block_count"), 2);
  EXPECT_EQ(model.Number("general.name"), std::nullopt);
  EXPECT_EQ(model.String("general.name"), "small");
  EXPECT_EQ(model.Bool("tokenizer.ggml.add_bos_token"), true);
  EXPECT_EQ(model.chat_template(), "{{ messages }}");
  // eos 2 by key and <|im_end|> by name; </s> is an ordinary token here and does not count.
  EXPECT_THAT(model.EndOfGeneration(), ElementsAre(2, 3));
}

TEST(ModelSourceTest, FolderWithOneGgufOpens) {
  const TempDir dir;
  dir.Write("small.gguf", SmallGguf().Build());
  EXPECT_TRUE(ModelSource::Open(dir.path()).ok());
  dir.Write("other.gguf", SmallGguf().Build());
  EXPECT_EQ(ModelSource::Open(dir.path()).status().code(), StatusCode::kInvalidArgument);
}

TEST(ModelSourceTest, RefusesWhatIsNoModel) {
  const TempDir dir;
  EXPECT_EQ(ModelSource::Open(dir.path() + "/absent").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ModelSource::Open(dir.path()).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ModelSource::Open(dir.Write("notes.txt", "hello")).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(ModelSource::Open(dir.Write("empty.gguf", "")).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(ModelSource::Open(dir.Write("part.safetensors", "x")).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(ModelSource::Open("/dev/null").status().code(), StatusCode::kInvalidArgument);
}

TEST(ModelSourceTest, RefusesSplitGgufByName) {
  const TempDir dir;
  GgufBuilder builder = SmallGguf();
  builder.Entry("split.count", GgufType::kUint16, ByteWriter().Put<std::uint16_t>(3).bytes());
  EXPECT_EQ(ModelSource::Open(dir.Write("m-00001-of-00003.gguf", builder.Build())).status().code(),
            StatusCode::kUnimplemented);
}

TEST(ModelSourceTest, NeedsAnArchitecture) {
  const TempDir dir;
  EXPECT_EQ(
      ModelSource::Open(dir.Write("m.gguf", GgufBuilder().Uint32("a", 1).Build())).status().code(),
      StatusCode::kDataLoss);
}

}  // namespace
}  // namespace holmes::weights
