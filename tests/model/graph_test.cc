#include "model/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "model/fake_source.h"

namespace holmes::model {
namespace {

using testing::HasSubstr;

StatusOr<Graph> Build(const FakeSource& source) {
  HOLMES_ASSIGN_OR_RETURN(const std::vector<Description> descriptions, BuiltInDescriptions());
  HOLMES_ASSIGN_OR_RETURN(const Description description, FindDescription(descriptions, source));
  return BuildGraph(description, source);
}

std::string Message(const Status& status) { return std::string(status.message()); }

TEST(GraphTest, FindsEveryTensorAndNumber) {
  const FakeSource source = MakeTinySource("llama", false);
  const StatusOr<Graph> graph = Build(source);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  EXPECT_EQ(graph->vocab_size, 16);
  EXPECT_EQ(graph->hidden_size, 8);
  ASSERT_EQ(graph->ops.size(), 4U);
  EXPECT_TRUE(graph->tied_output());
  const auto& attention = std::get<AttentionOp>(graph->ops[2]);
  EXPECT_EQ(attention.layer_in_group, 1);
  EXPECT_EQ(attention.head_dim, 2);
  EXPECT_EQ(attention.query.bias, nullptr);
  EXPECT_EQ(attention.key.weight->name, "model.layers.1.self_attn.k_proj.weight");
  EXPECT_EQ(graph->rope.layout, RopeLayout::kHalf);
  EXPECT_EQ(graph->rope.inv_freq, (std::vector<double>{1.0}));
}

TEST(GraphTest, ASeparateOutputIsUsedWhereItIs) {
  FakeSource source = MakeTinySource("llama", false);
  source.AddTensor("lm_head.weight", {16, 8});
  const StatusOr<Graph> graph = Build(source);
  ASSERT_TRUE(graph.ok());
  EXPECT_FALSE(graph->tied_output());
}

TEST(GraphTest, RequiredBiasesMustBeThere) {
  EXPECT_TRUE(Build(MakeTinySource("qwen2", true)).ok());
  const Status status = Build(MakeTinySource("qwen2", false)).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(Message(status), HasSubstr("q_proj.bias"));
}

TEST(GraphTest, AShapeThatDoesNotFitIsNamedWithBothShapes) {
  FakeSource source = MakeTinySource("llama", false);
  source.numbers_["intermediate_size"] = 13;
  const Status status = Build(source).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(Message(status), HasSubstr("[12, 8]"));
  EXPECT_THAT(Message(status), HasSubstr("[13, 8]"));
}

TEST(GraphTest, NumbersOutOfRangeAreErrors) {
  const std::pair<const char*, double> bad[] = {{"num_hidden_layers", 0},
                                                {"num_hidden_layers", 1e9},
                                                {"hidden_size", 8.5},
                                                {"num_key_value_heads", 3},
                                                {"rms_norm_eps", 0},
                                                {"rope_theta", -1},
                                                {"max_position_embeddings", std::nan("")}};
  for (const auto& [key, value] : bad) {
    FakeSource source = MakeTinySource("llama", false);
    source.numbers_[key] = value;
    EXPECT_EQ(Build(source).status().code(), StatusCode::kDataLoss) << key << " = " << value;
  }
}

TEST(GraphTest, AnUnknownArchitectureIsNamedWithTheNearest) {
  const Status status = Build(MakeTinySource("qwen22", false)).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(Message(status), HasSubstr("'qwen2'"));
}

TEST(RopeScalingTest, WavelengthsAreScaledAsPublished) {
  FakeSource source = MakeTinySource("llama", false);
  source.numbers_["head_dim"] = 2;
  source.strings_["rope_scaling.rope_type"] = "llama3";
  source.numbers_["rope_scaling.factor"] = 8;
  source.numbers_["rope_scaling.low_freq_factor"] = 1;
  source.numbers_["rope_scaling.high_freq_factor"] = 4;
  // One frequency, 1 rad per position: 8 / 2 pi = 1.27 turns in the original context, between the
  // two bounds.
  source.numbers_["rope_scaling.original_max_position_embeddings"] = 8;
  const StatusOr<Graph> graph = Build(source);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const double blend = (8 / (2 * M_PI) - 1) / 3;
  EXPECT_NEAR(graph->rope.inv_freq[0], (1 - blend) / 8 + blend, 1e-12);
}

TEST(RopeScalingTest, AnotherScalingIsRefusedByName) {
  FakeSource source = MakeTinySource("llama", false);
  source.strings_["rope_scaling.type"] = "yarn";
  const Status status = Build(source).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(Message(status), HasSubstr("yarn"));
}

TEST(DescriptionTest, AnUnknownKeyNamesTheLineAndTheNearest) {
  const Status status = ParseDescription("name: x\nmatchs: {gguf: [x]}\n", "x.yaml").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("x.yaml:2"));
  EXPECT_THAT(Message(status), HasSubstr("'matches'"));
}

TEST(DescriptionTest, BrokenYamlIsAnError) {
  for (const char* text : {"", "[", "name: {", "- a", "name: x", "name: [x]\nmatches: 3"}) {
    EXPECT_EQ(ParseDescription(text, "x.yaml").status().code(), StatusCode::kInvalidArgument)
        << text;
  }
}

}  // namespace
}  // namespace holmes::model
