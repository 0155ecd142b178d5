#include "weights/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace holmes::weights {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kConfig = R"({"model_type":"llama","vocab_size":10,"eos_token_id":3})";

/// Four ordinary tokens, then <s> and two ends of which one is not special.
text::VocabSpec Spec() {
  text::VocabSpec spec;
  spec.tokens = {"a", "b", "c", "d", "<s>", "</s>", "<|im_end|>"};
  spec.added = {{.id = 4, .text = "<s>", .special = true},
                {.id = 5, .text = "</s>", .special = true},
                {.id = 6, .text = "<|im_end|>", .special = false}};
  return spec;
}

text::VocabSpec Completed(std::string_view tokenizer_config, text::VocabSpec spec = Spec()) {
  const auto config = HfConfig::FromText("m", kConfig, "", tokenizer_config, "");
  EXPECT_TRUE(config.ok()) << config.status().ToString();
  if (config.ok()) config->Complete(spec);
  return spec;
}

TEST(HfConfigTest, EndIdsJoinConfigTokenizerAndWellKnownTexts) {
  EXPECT_THAT(Completed("").end_of_generation, ElementsAre(3, 5));
  EXPECT_THAT(Completed(R"({"eos_token":"a"})").end_of_generation, ElementsAre(0, 3, 5));
}

TEST(HfConfigTest, TokensAreNamedByStringOrObject) {
  const text::VocabSpec spec = Completed(
      R"({"bos_token":{"content":"<s>","lstrip":false},"eos_token":"</s>","pad_token":null})");
  EXPECT_EQ(spec.bos, 4);
  EXPECT_EQ(spec.eos, 5);
  EXPECT_EQ(spec.pad, std::nullopt);
  EXPECT_EQ(Completed(R"({"bos_token":"absent"})").bos, std::nullopt);
  EXPECT_EQ(Completed(R"({"bos_token":["<s>"]})").bos, std::nullopt);
}

TEST(HfConfigTest, BosIsAddedOnlyWhereThereIsOne) {
  EXPECT_TRUE(Completed(R"({"add_bos_token":true,"bos_token":"<s>"})").add_bos);
  EXPECT_FALSE(Completed(R"({"add_bos_token":true})").add_bos);
  text::VocabSpec from_tokenizer = Spec();
  from_tokenizer.bos = 4;
  from_tokenizer.add_bos = true;
  EXPECT_TRUE(Completed("", from_tokenizer).add_bos);
  EXPECT_FALSE(Completed(R"({"add_bos_token":false})", from_tokenizer).add_bos);
  EXPECT_TRUE(Completed(R"({"add_eos_token":true,"eos_token":"</s>"})").add_eos);
}

TEST(HfConfigTest, PathsReachIntoObjectsOnly) {
  const auto config = HfConfig::FromText(
      "m",
      R"({"model_type":"x","a":{"b":{"c":1}},"a.b":{"d":2},"list":[1],"null":null})",
      "",
      "",
      "");
  ASSERT_TRUE(config.ok());
  EXPECT_NE(config->Find("a.b.c"), nullptr);
  EXPECT_NE(config->Find("a.b"), nullptr);
  EXPECT_EQ(config->Find("a.b.c.d"), nullptr);
  EXPECT_EQ(config->Find("list.0"), nullptr);
  EXPECT_EQ(config->Find("null"), nullptr);
  EXPECT_EQ(config->Find(""), nullptr);
  EXPECT_EQ(config->Find("."), nullptr);
}

}  // namespace
}  // namespace holmes::weights
