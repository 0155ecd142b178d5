#include "kernels/sampling/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace holmes::kernels {
namespace {

std::uint64_t Mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

/// -1 when all are finite or -inf and at least one is finite.
int FindBadLogit(std::span<const float> logits) {
  bool any_finite = false;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == std::numeric_limits<float>::infinity())
      return static_cast<int>(i);
    any_finite |= std::isfinite(logits[i]);
  }
  return any_finite ? -1 : 0;
}

double LogSumExp(std::span<const float> logits) {
  const float max = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x - max));
  return max + std::log(sum);
}

void FillLogprobs(std::span<const float> logits, int top, Sample& out) {
  const double norm = LogSumExp(logits);
  out.logprob = static_cast<float>(logits[static_cast<std::size_t>(out.id)] - norm);
  std::vector<TokenId> ids(logits.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i);
  const auto higher = [&](TokenId a, TokenId b) {
    const float la = logits[static_cast<std::size_t>(a)];
    const float lb = logits[static_cast<std::size_t>(b)];
    return la != lb ? la > lb : a < b;
  };
  const auto end =
      ids.begin() + std::min<std::ptrdiff_t>(top, static_cast<std::ptrdiff_t>(ids.size()));
  std::partial_sort(ids.begin(), end, ids.end(), higher);
  for (auto it = ids.begin(); it != end; ++it) {
    out.top_logprobs.emplace_back(*it,
                                  static_cast<float>(logits[static_cast<std::size_t>(*it)] - norm));
  }
}

}  // namespace

double KeyedUniform(const SampleKey& key) {
  const std::uint64_t bits = Mix(Mix(Mix(key.seed) ^ key.sample_index) ^ key.position);
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

Sampler::Sampler(int vocab_size)
    : work_(static_cast<std::size_t>(vocab_size)),
      counts_(static_cast<std::size_t>(vocab_size), 0) {}

void Sampler::ApplyPenalties(const SamplerParams& params,
                             std::span<const TokenId> prompt,
                             std::span<const TokenId> output) {
  const auto in_range = [&](TokenId id) {
    return id >= 0 && static_cast<std::size_t>(id) < work_.size();
  };
  if (params.repetition_penalty != 1.0F) {
    const auto penalise = [&](TokenId id) {
      if (!in_range(id) || counts_[static_cast<std::size_t>(id)] != 0) return;
      counts_[static_cast<std::size_t>(id)] = 1;
      float& logit = work_[static_cast<std::size_t>(id)];
      logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    };
    for (const TokenId id : prompt) penalise(id);
    for (const TokenId id : output) penalise(id);
    for (const TokenId id : prompt)
      if (in_range(id)) counts_[static_cast<std::size_t>(id)] = 0;
    for (const TokenId id : output)
      if (in_range(id)) counts_[static_cast<std::size_t>(id)] = 0;
  }
  if (params.presence_penalty == 0.0F && params.frequency_penalty == 0.0F) return;
  for (const TokenId id : output)
    if (in_range(id)) ++counts_[static_cast<std::size_t>(id)];
  for (const TokenId id : output) {
    if (!in_range(id)) continue;
    int& count = counts_[static_cast<std::size_t>(id)];
    if (count == 0) continue;
    work_[static_cast<std::size_t>(id)] -=
        params.presence_penalty + params.frequency_penalty * static_cast<float>(count);
    count = 0;
  }
}

StatusOr<Sample> Sampler::Draw(std::span<const float> logits,
                               const SamplerParams& params,
                               std::span<const TokenId> prompt,
                               std::span<const TokenId> output,
                               const SampleKey& key) {
  if (const int bad = FindBadLogit(logits); bad >= 0) {
    return base::InternalError(
        fmt::format("the model gave the logit {} for token {}; no token can be drawn",
                    logits[static_cast<std::size_t>(bad)],
                    bad));
  }
  std::copy(logits.begin(), logits.end(), work_.begin());
  ApplyPenalties(params, prompt, output);
  for (const auto& [id, bias] : params.logit_bias) work_[static_cast<std::size_t>(id)] += bias;
  Sample out;
  out.id = DrawFrom(params, KeyedUniform(key));
  if (params.top_logprobs >= 0) FillLogprobs(logits, params.top_logprobs, out);
  return out;
}

TokenId Sampler::DrawFrom(const SamplerParams& params, double u) {
  const auto best = std::max_element(work_.begin(), work_.end());
  const auto best_id = static_cast<TokenId>(best - work_.begin());
  if (params.temperature <= 0.0F || params.top_k == 1) return best_id;
  if (params.top_k > 0 || params.top_p < 1.0F || params.min_p > 0.0F)
    return DrawTruncated(params, *best, u);
  // No truncation: the inverse of the cumulative distribution in order of ids, no sorting needed.
  double total = 0.0;
  for (const float x : work_)
    total += std::exp(static_cast<double>(x - *best) / params.temperature);
  double left = u * total;
  TokenId last = best_id;
  for (std::size_t i = 0; i < work_.size(); ++i) {
    const double weight = std::exp(static_cast<double>(work_[i] - *best) / params.temperature);
    if (weight == 0.0) continue;
    last = static_cast<TokenId>(i);
    left -= weight;
    if (left < 0.0) break;
  }
  return last;
}

TokenId Sampler::DrawTruncated(const SamplerParams& params, float max_logit, double u) {
  candidates_.clear();
  double total = 0.0;
  // min-p is a bound relative to the best, so what is below it never enters, unless top-p needs the
  // whole mass first.
  for (std::size_t i = 0; i < work_.size(); ++i) {
    const double weight = std::exp(static_cast<double>(work_[i] - max_logit) / params.temperature);
    if (weight == 0.0) continue;
    candidates_.push_back({static_cast<TokenId>(i), work_[i], weight});
    total += weight;
  }
  const auto lower = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit < b.logit : a.id > b.id;
  };
  if (params.top_k > 0 && static_cast<std::size_t>(params.top_k) < candidates_.size()) {
    const auto end = candidates_.begin() + params.top_k;
    std::nth_element(
        candidates_.begin(), end, candidates_.end(), [&](const auto& a, const auto& b) {
          return lower(b, a);
        });
    candidates_.erase(end, candidates_.end());
    // Summed in a fixed order, so that the draw does not depend on how nth_element left them.
    std::sort(candidates_.begin(), candidates_.end(), [&](const auto& a, const auto& b) {
      return lower(b, a);
    });
    total = 0.0;
    for (const Candidate& c : candidates_) total += c.weight;
  }
  // Popped from a heap in descending order until the nucleus is full.
  std::make_heap(candidates_.begin(), candidates_.end(), lower);
  std::vector<Candidate> kept;
  double mass = 0.0;
  while (!candidates_.empty() && (kept.empty() || mass < params.top_p * total)) {
    std::pop_heap(candidates_.begin(), candidates_.end(), lower);
    const Candidate next = candidates_.back();
    candidates_.pop_back();
    if (!kept.empty() && next.weight < params.min_p) break;
    kept.push_back(next);
    mass += next.weight;
  }
  double left = u * mass;
  for (const Candidate& c : kept) {
    left -= c.weight;
    if (left < 0.0) return c.id;
  }
  return kept.back().id;
}

}  // namespace holmes::kernels
