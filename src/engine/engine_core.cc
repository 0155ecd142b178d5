#include "engine/engine_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <utility>

#include "engine/engine_loop.h"

namespace holmes::engine {
namespace {

Status CheckId(TokenId id, int vocab_size, std::string_view what) {
  if (id >= 0 && id < vocab_size) return OkStatus();
  return base::InvalidArgumentError(
             fmt::format("{} contains token id {}; ids go from 0 to {}", what, id, vocab_size - 1))
      .WithParam(std::string(what));
}

Status CheckRange(bool ok, float value, std::string_view what, std::string_view range) {
  if (ok) return OkStatus();
  return base::InvalidArgumentError(fmt::format("{} is {}; it must be {}", what, value, range))
      .WithParam(std::string(what));
}

Status CheckSampling(const SamplingParams& p, int vocab_size) {
  const auto finite = [](float value) { return std::isfinite(value); };
  HOLMES_RETURN_IF_ERROR(CheckRange(
      finite(p.temperature) && p.temperature >= 0, p.temperature, "temperature", "at least 0"));
  HOLMES_RETURN_IF_ERROR(
      CheckRange(p.top_p > 0 && p.top_p <= 1, p.top_p, "top_p", "greater than 0 and at most 1"));
  HOLMES_RETURN_IF_ERROR(
      CheckRange(p.min_p >= 0 && p.min_p < 1, p.min_p, "min_p", "at least 0 and less than 1"));
  HOLMES_RETURN_IF_ERROR(
      CheckRange(p.top_k >= 0, static_cast<float>(p.top_k), "top_k", "at least 0"));
  HOLMES_RETURN_IF_ERROR(
      CheckRange(finite(p.presence_penalty), p.presence_penalty, "presence_penalty", "finite"));
  HOLMES_RETURN_IF_ERROR(
      CheckRange(finite(p.frequency_penalty), p.frequency_penalty, "frequency_penalty", "finite"));
  HOLMES_RETURN_IF_ERROR(CheckRange(finite(p.repetition_penalty) && p.repetition_penalty > 0,
                                    p.repetition_penalty,
                                    "repetition_penalty",
                                    "greater than 0"));
  for (const auto& [id, bias] : p.logit_bias) {
    HOLMES_RETURN_IF_ERROR(CheckId(id, vocab_size, "logit_bias"));
    HOLMES_RETURN_IF_ERROR(CheckRange(!std::isnan(bias), bias, "logit_bias", "a number"));
  }
  return OkStatus();
}

/// Seeds for requests that bring none: different ones, each exact in a JSON number.
class SeedSource {
 public:
  SeedSource()
      : start_((static_cast<std::uint64_t>(std::random_device{}()) << 32) |
               std::random_device{}()) {}
  std::uint64_t Next() {
    // SplitMix64's finalizer over a counter (Steele, Lea, Flood 2014).
    std::uint64_t z =
        start_ + 0x9E3779B97F4A7C15ULL * count_.fetch_add(1, std::memory_order_relaxed);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return (z ^ (z >> 31)) >> 11;
  }

 private:
  const std::uint64_t start_;
  std::atomic<std::uint64_t> count_{1};
};

class EngineCore final : public Engine {
 public:
  struct Parts {
    EngineOptions options;
    std::unique_ptr<const text::Tokenizer> tokenizer;
    ModelInfo model;
    std::vector<TokenId> end_of_generation;
    const base::Clock* clock = nullptr;
  };
  EngineCore(Parts parts,
             std::unique_ptr<sched::Scheduler> scheduler,
             std::unique_ptr<exec::Backend> backend)
      : parts_(std::move(parts)),
        loop_({.max_queued_requests = parts_.options.max_queued_requests,
               .output_workers = parts_.options.output_workers,
               .tokenizer = parts_.tokenizer.get(),
               .clock = parts_.clock},
              std::move(scheduler),
              std::move(backend)) {}

  StatusOr<Submitted> Submit(Request request, EventSink sink) override;
  void Cancel(RequestId id) override { loop_.mailbox().Cancel(id); }
  bool Drain(base::Clock::TimePoint deadline) override;
  EngineStats Stats() const override;
  const ModelInfo& model() const override { return parts_.model; }
  const text::Tokenizer& tokenizer() const override { return *parts_.tokenizer; }

 private:
  Status Check(const Request& request) const;
  Submission Prepare(Request request, EventSink sink) const;

  const Parts parts_;
  SeedSource seeds_;
  std::atomic<std::uint64_t> num_submitted_{0};
  EngineLoop loop_;
};

Status EngineCore::Check(const Request& request) const {
  if (request.task != Task::kGenerate) {
    return base::UnimplementedError("this model answers generation requests only")
        .WithParam("task");
  }
  if (request.prompt.empty())
    return base::InvalidArgumentError("the prompt has no tokens").WithParam("prompt");
  if (static_cast<std::int64_t>(request.prompt.size()) >= parts_.model.context_tokens) {
    return base::InvalidArgumentError(fmt::format("the prompt has {} tokens, but prompt and answer "
                                                  "together may have {}: shorten the prompt",
                                                  request.prompt.size(),
                                                  parts_.model.context_tokens))
        .WithParam("prompt");
  }
  if (request.n < 1 || request.n > parts_.options.max_samples) {
    return base::InvalidArgumentError(
               fmt::format("n is {}; it must be 1 to {}", request.n, parts_.options.max_samples))
        .WithParam("n");
  }
  for (const auto& [value, name] :
       {std::pair{request.max_tokens, "max_tokens"}, {request.min_tokens, "min_tokens"}}) {
    if (value < 0) {
      return base::InvalidArgumentError(
                 fmt::format("{} is {}; it must not be negative", name, value))
          .WithParam(name);
    }
  }
  if (request.adapter != AdapterId{0}) {
    return base::NotFoundError(fmt::format("adapter {} is not loaded", request.adapter.value))
        .WithParam("adapter");
  }
  for (const TokenId id : request.prompt)
    HOLMES_RETURN_IF_ERROR(CheckId(id, parts_.model.vocab_size, "prompt"));
  for (const TokenId id : request.stop_token_ids) {
    HOLMES_RETURN_IF_ERROR(CheckId(id, parts_.model.vocab_size, "stop_token_ids"));
  }
  return CheckSampling(request.sampling, parts_.model.vocab_size);
}

/// The prompt's last tokens, from where its last incomplete character can begin. Hidden
/// tokens have no text.
std::vector<TokenId> TailOf(const text::Tokenizer& tokenizer, const Request& request) {
  constexpr std::size_t kLongestCharacter = 4;
  std::size_t bytes = 0;
  auto begin = request.prompt.end();
  while (begin != request.prompt.begin() && bytes < kLongestCharacter) {
    --begin;
    const bool hidden = request.skip_special_tokens && tokenizer.IsSpecial(*begin);
    if (!hidden) bytes += tokenizer.TokenBytes(*begin).size();
  }
  return {begin, request.prompt.end()};
}

Submission EngineCore::Prepare(Request request, EventSink sink) const {
  auto output = std::make_unique<RequestOutput>(
      RequestOutput{.sink = std::move(sink),
                    .stops = text::StopSet(std::move(request.stop)),
                    .options = {.skip_special_tokens = request.skip_special_tokens,
                                .logprobs = request.sampling.logprobs},
                    .prompt_tokens = static_cast<int>(request.prompt.size()),
                    .prompt_tail = TailOf(*parts_.tokenizer, request),
                    .submitted = parts_.clock->Now()});
  output->samples.resize(static_cast<std::size_t>(request.n));
  std::ranges::stable_sort(request.sampling.logit_bias, {}, &std::pair<TokenId, float>::first);
  sched::SequenceGroup spec{
      .prompt = std::move(request.prompt),
      .sampling = std::move(request.sampling),
      .n = request.n,
      .max_tokens = request.max_tokens,
      .min_tokens = request.min_tokens,
      .end_ids = std::move(request.stop_token_ids),
      .adapter = request.adapter,
      .name_space = fmt::format("{}/{}", request.adapter.value, request.cache_salt),
      .priority = request.priority,
      .deadline = request.deadline,
  };
  if (!request.ignore_eos) {
    spec.end_ids.insert(
        spec.end_ids.end(), parts_.end_of_generation.begin(), parts_.end_of_generation.end());
  }
  return {.spec = std::move(spec), .output = std::move(output)};
}

StatusOr<Submitted> EngineCore::Submit(Request request, EventSink sink) {
  HOLMES_RETURN_IF_ERROR(Check(request));
  const std::uint64_t seed = request.seed ? *request.seed : seeds_.Next();
  request.sampling.seed = seed;
  HOLMES_ASSIGN_OR_RETURN(const RequestId id,
                          loop_.mailbox().Submit(Prepare(std::move(request), std::move(sink))));
  num_submitted_.fetch_add(1, std::memory_order_relaxed);
  return Submitted{.id = id, .seed = seed};
}

bool EngineCore::Drain(base::Clock::TimePoint deadline) {
  loop_.mailbox().Refuse(
      base::UnavailableError("the engine is shutting down and takes no new requests"));
  if (loop_.mailbox().WaitIdle(deadline)) return true;
  loop_.mailbox().CancelAll();
  loop_.mailbox().WaitIdle();
  return false;
}

EngineStats EngineCore::Stats() const {
  EngineStats stats = loop_.Stats();
  stats.requests_submitted = num_submitted_.load(std::memory_order_relaxed);
  return stats;
}

/// The smaller of what is asked for and what there is; 0 asks for all.
int Limit(int asked, int there_is) { return asked == 0 ? there_is : std::min(asked, there_is); }

Status CheckOptions(const EngineOptions& options) {
  for (const auto& [value, name] : {std::pair{options.max_queued_requests, "max_queued_requests"},
                                    {options.max_samples, "max_samples"},
                                    {options.output_workers, "output_workers"}}) {
    if (value < 1)
      return base::InvalidArgumentError(
          fmt::format("{} is {}; it must be at least 1", name, value));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<Engine>> CreateEngine(EngineOptions options,
                                               std::unique_ptr<exec::Backend> backend,
                                               std::unique_ptr<const text::Tokenizer> tokenizer,
                                               ModelInfo model,
                                               std::vector<TokenId> end_of_generation,
                                               const base::Clock& clock) {
  HOLMES_RETURN_IF_ERROR(CheckOptions(options));
  const exec::BackendInfo& info = backend->info();
  sched::SchedulerOptions limits{
      .kv_groups = {},
      .context_tokens = Limit(model.context_tokens, info.context_tokens),
      .max_tokens_per_step = Limit(options.max_tokens_per_step, info.max_tokens_per_step),
      .max_rows_per_step = Limit(options.max_rows_per_step, info.max_rows_per_step),
      .max_prefill_tokens_per_step = options.max_prefill_tokens_per_step,
      .prefix_reuse = options.prefix_reuse,
  };
  for (const exec::KvGroupInfo& group : info.kv_groups) {
    limits.kv_groups.push_back({.num_blocks = group.num_blocks,
                                .block_tokens = group.block_tokens,
                                .window_tokens = group.window_tokens});
  }
  HOLMES_ASSIGN_OR_RETURN(std::unique_ptr<sched::Scheduler> scheduler,
                          sched::Scheduler::Create(std::move(limits), clock));
  model.context_tokens = scheduler->max_sequence_tokens();
  model.vocab_size = info.vocab_size;
  return std::unique_ptr<Engine>(new EngineCore({.options = options,
                                                 .tokenizer = std::move(tokenizer),
                                                 .model = std::move(model),
                                                 .end_of_generation = std::move(end_of_generation),
                                                 .clock = &clock},
                                                std::move(scheduler),
                                                std::move(backend)));
}

}  // namespace holmes::engine
