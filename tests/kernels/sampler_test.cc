#include "kernels/sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace holmes::kernels {
namespace {

const std::vector<float> kLogits = {1.0F, 3.0F, 2.0F, 0.5F, 3.0F, -1.0F};

TokenId Draw(Sampler& sampler,
             const SamplerParams& params,
             std::uint64_t position,
             std::vector<TokenId> prompt = {},
             std::vector<TokenId> output = {}) {
  auto drawn = sampler.Draw(
      kLogits, params, prompt, output, {.seed = 5, .sample_index = 0, .position = position});
  EXPECT_TRUE(drawn.ok()) << drawn.status().ToString();
  return drawn->id;
}

std::map<TokenId, double> Frequencies(const SamplerParams& params, int draws) {
  Sampler sampler(6);
  std::map<TokenId, double> out;
  for (int i = 0; i < draws; ++i)
    out[Draw(sampler, params, static_cast<std::uint64_t>(i))] += 1.0 / draws;
  return out;
}

TEST(SamplerTest, GreedyTakesTheLowestIdOfEquals) {
  Sampler sampler(6);
  EXPECT_EQ(Draw(sampler, {.temperature = 0}, 0), 1);
}

TEST(SamplerTest, FrequenciesFollowTheSoftmax) {
  constexpr int kDraws = 40'000;
  const auto seen = Frequencies({.temperature = 0.7F}, kDraws);
  double total = 0;
  for (const float x : kLogits) total += std::exp(x / 0.7);
  for (std::size_t i = 0; i < kLogits.size(); ++i) {
    const double want = std::exp(kLogits[i] / 0.7) / total;
    const double sigma = std::sqrt(want * (1 - want) / kDraws);
    const auto found = seen.find(static_cast<TokenId>(i));
    EXPECT_NEAR(found == seen.end() ? 0 : found->second, want, 5 * sigma + 1e-9) << i;
  }
}

TEST(SamplerTest, TruncationKeepsOnlyTheBest) {
  for (const auto& [id, f] : Frequencies({.top_k = 2}, 2000))
    EXPECT_TRUE(id == 1 || id == 4) << id << " " << f;
  // The weights are 2.7, 20.1, 7.4, 1.6, 20.1, 0.4 of 52.3: the two best hold 0.77 and three 0.91.
  for (const auto& [id, f] : Frequencies({.top_p = 0.75F}, 2000))
    EXPECT_TRUE(id == 1 || id == 4) << id << " " << f;
  const auto nucleus = Frequencies({.top_p = 0.85F}, 5000);
  EXPECT_EQ(nucleus.size(), 3U);
  EXPECT_TRUE(nucleus.contains(2));
  const auto relative =
      Frequencies({.min_p = 0.3F}, 5000);  // 7.4 / 20.1 = 0.37 stays, 2.7 / 20.1 goes
  EXPECT_EQ(relative.size(), 3U);
}

TEST(SamplerTest, AKeyDrawsTheSameTokenWhateverWasDrawnBefore) {
  Sampler a(6);
  Sampler b(6);
  std::vector<TokenId> first;
  for (std::uint64_t p = 0; p < 50; ++p) first.push_back(Draw(a, {}, p));
  for (std::uint64_t p = 50; p-- > 0;) EXPECT_EQ(Draw(b, {}, p), first[p]);
}

TEST(SamplerTest, SamplesOfOneRequestDiffer) {
  std::vector<double> draws;
  for (std::uint32_t i = 0; i < 8; ++i)
    draws.push_back(KeyedUniform({.seed = 0, .sample_index = i, .position = 3}));
  std::sort(draws.begin(), draws.end());
  EXPECT_EQ(std::unique(draws.begin(), draws.end()), draws.end());
}

TEST(SamplerTest, PenaltiesAndBias) {
  Sampler sampler(6);
  // 1 and 4 tie at 3: the presence penalty sees the output, the frequency penalty counts, the
  // repetition penalty also sees the prompt.
  EXPECT_EQ(Draw(sampler, {.temperature = 0, .presence_penalty = 0.5F}, 0, {}, {1}), 4);
  EXPECT_EQ(Draw(sampler, {.temperature = 0, .frequency_penalty = 0.6F}, 0, {}, {1, 4, 1, 4}), 2);
  EXPECT_EQ(Draw(sampler, {.temperature = 0, .presence_penalty = 0.5F}, 0, {1}, {}), 1);
  EXPECT_EQ(Draw(sampler, {.temperature = 0, .repetition_penalty = 2.0F}, 0, {1, 4}, {}), 2);
  const std::vector<std::pair<TokenId, float>> bias = {{3, 100.0F}};
  EXPECT_EQ(Draw(sampler, {.temperature = 0, .logit_bias = bias}, 0), 3);
  EXPECT_EQ(Draw(sampler, {.temperature = 0}, 0), 1)
      << "nothing of an earlier call may stay behind";
}

TEST(SamplerTest, LogprobsAreOfTheRawDistribution) {
  Sampler sampler(6);
  const std::vector<std::pair<TokenId, float>> bias = {{3, 100.0F}};
  const auto drawn = sampler.Draw(
      kLogits, {.temperature = 0.1F, .logit_bias = bias, .top_logprobs = 3}, {}, {}, {});
  ASSERT_TRUE(drawn.ok());
  double total = 0;
  for (const float x : kLogits) total += std::exp(x);
  EXPECT_EQ(drawn->id, 3);
  EXPECT_NEAR(drawn->logprob, 0.5 - std::log(total), 1e-6);
  ASSERT_EQ(drawn->top_logprobs.size(), 3U);
  EXPECT_EQ(drawn->top_logprobs[0].first, 1);
  EXPECT_EQ(drawn->top_logprobs[1].first, 4);
  EXPECT_EQ(drawn->top_logprobs[2].first, 2);
}

TEST(SamplerTest, NanAndInfinityAreErrorsOfThisRowAlone) {
  Sampler sampler(3);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& bad :
       {std::vector<float>{0, nan, 0}, {inf, 0, 0}, {-inf, -inf, -inf}}) {
    EXPECT_EQ(sampler.Draw(bad, {}, {}, {}, {}).status().code(), StatusCode::kInternal);
  }
  EXPECT_TRUE(sampler.Draw(std::vector<float>{-inf, 1, 0}, {}, {}, {}, {}).ok());
}

}  // namespace
}  // namespace holmes::kernels
