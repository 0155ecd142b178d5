/// Drawing the next token from logits.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace holmes::kernels {

/// Plain numbers, checked by the caller; meanings as in OpenAI's and vLLM's APIs.
struct SamplerParams {
  float temperature = 1.0F;  // 0 = greedy: the highest logit, the lowest id of equals
  float top_p = 1.0F;
  int top_k = 0;
  float min_p = 0.0F;
  float presence_penalty = 0.0F;
  float frequency_penalty = 0.0F;
  float repetition_penalty = 1.0F;
  std::span<const std::pair<TokenId, float>> logit_bias;
  int top_logprobs = -1;  // -1: no log probabilities wanted
};

/// What makes a draw repeatable: the same key over the same logits gives the same token, whatever
/// else runs.
struct SampleKey {
  std::uint64_t seed = 0;
  std::uint32_t sample_index = 0;
  std::uint64_t position = 0;  // of the token that is drawn
};

/// Uniform in [0, 1) with 53 bits, a function of the key alone (SplitMix64 finaliser, Steele et al.
/// 2014, over the chained key).
double KeyedUniform(const SampleKey& key);

struct Sample {
  TokenId id = -1;
  float logprob = 0.0F;  // under the raw logits: before bias, penalties and temperature
  std::vector<std::pair<TokenId, float>> top_logprobs;  // descending; equals in order of id
};

/// Keeps its working memory between calls; one thread at a time.
/// Order: repetition penalty, presence and frequency penalties, bias, temperature, top-k, top-p,
/// min-p.
class Sampler {
 public:
  explicit Sampler(int vocab_size);

  /// logits [vocab_size]; prompt and output are the sequence's ids so far (penalties: repetition
  /// over both, the others over the output). Errors: kInternal when no finite logit is there or one
  /// is NaN or +inf.
  StatusOr<Sample> Draw(std::span<const float> logits,
                        const SamplerParams& params,
                        std::span<const TokenId> prompt,
                        std::span<const TokenId> output,
                        const SampleKey& key);

 private:
  struct Candidate {
    TokenId id;
    float logit;
    double weight;
  };
  void ApplyPenalties(const SamplerParams& params,
                      std::span<const TokenId> prompt,
                      std::span<const TokenId> output);
  TokenId DrawFrom(const SamplerParams& params, double u);
  TokenId DrawTruncated(const SamplerParams& params, float max_logit, double u);

  std::vector<float> work_;
  std::vector<int> counts_;  // zero between calls
  std::vector<Candidate> candidates_;
};

}  // namespace holmes::kernels
