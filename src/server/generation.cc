#include "server/generation.h"

#include <algorithm>

namespace holmes::server {
namespace {

template <typename T>
T Pick(const std::optional<T>& asked, const std::optional<T>& fallback, T otherwise) {
  return asked ? *asked : fallback.value_or(otherwise);
}

}  // namespace

engine::Request ToEngineRequest(const api::GenerationFields& fields,
                                const GenerationDefaults& defaults) {
  engine::Request request;
  engine::SamplingParams& sampling = request.sampling;
  sampling.temperature = static_cast<float>(Pick(fields.temperature, defaults.temperature, 1.0));
  sampling.top_p = static_cast<float>(Pick(fields.top_p, defaults.top_p, 1.0));
  sampling.min_p = static_cast<float>(Pick(fields.min_p, defaults.min_p, 0.0));
  sampling.repetition_penalty =
      static_cast<float>(Pick(fields.repetition_penalty, defaults.repetition_penalty, 1.0));
  sampling.top_k = std::max(0, Pick(fields.top_k, defaults.top_k, 0));  // -1 is "off" too
  sampling.presence_penalty = static_cast<float>(fields.presence_penalty.value_or(0.0));
  sampling.frequency_penalty = static_cast<float>(fields.frequency_penalty.value_or(0.0));
  sampling.logit_bias = fields.logit_bias;
  sampling.logprobs = fields.logprobs;
  sampling.top_logprobs = fields.top_logprobs;
  request.seed = fields.seed;
  request.n = fields.n;
  request.max_tokens = fields.max_tokens.value_or(0);
  request.min_tokens = fields.min_tokens;
  request.ignore_eos = fields.ignore_eos;
  request.skip_special_tokens = fields.skip_special_tokens;
  request.stop = fields.stop;
  request.stop_token_ids = fields.stop_token_ids;
  request.cache_salt = fields.cache_salt;
  request.priority = fields.priority;
  return request;
}

}  // namespace holmes::server
