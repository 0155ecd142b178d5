#include "app/bench_offline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>

#include "base/mutex.h"

namespace holmes::app {
namespace {

using Clock = std::chrono::steady_clock;

/// Waits for a number of requests and remembers their times.
struct Gathered {
  base::Mutex mu;
  base::CondVar changed;
  int left HOLMES_GUARDED_BY(mu) = 0;
  int tokens HOLMES_GUARDED_BY(mu) = 0;
  Clock::time_point last_first_token HOLMES_GUARDED_BY(mu);
  Clock::time_point end HOLMES_GUARDED_BY(mu);
  Status error HOLMES_GUARDED_BY(mu);
};

struct Timing {
  double prefill_seconds = 0;  // start to the last request's first token
  double decode_seconds = 0;   // from there to the end
  int decoded_tokens = 0;      // after the first ones
};

class Bench {
 public:
  explicit Bench(engine::Engine& engine) : engine_(engine) {}

  /// `batch` requests at once.
  StatusOr<Timing> Once(int batch, int prompt_tokens, int output_tokens) {
    auto gathered = std::make_shared<Gathered>();
    {
      base::MutexLock lock(gathered->mu);
      gathered->left = batch;
    }
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < batch; ++i) {
      engine::Request request;
      for (int t = 0; t < prompt_tokens; ++t)
        request.prompt.push_back(
            static_cast<TokenId>(rng_() % static_cast<unsigned>(engine_.model().vocab_size)));
      request.sampling.temperature = 0;
      request.max_tokens = output_tokens;
      request.ignore_eos = true;
      auto seen_first = std::make_shared<bool>(false);
      HOLMES_RETURN_IF_ERROR(engine_
                                 .Submit(std::move(request),
                                         [gathered, seen_first](engine::Event&& event) {
                                           Take(*gathered, *seen_first, event);
                                         })
                                 .status());
    }
    base::MutexLock lock(gathered->mu);
    while (gathered->left > 0) gathered->changed.Wait(gathered->mu);
    HOLMES_RETURN_IF_ERROR(gathered->error);
    const auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
    return Timing{seconds(gathered->last_first_token - start),
                  seconds(gathered->end - gathered->last_first_token),
                  gathered->tokens - batch};
  }

 private:
  static void Take(Gathered& gathered, bool& seen_first, const engine::Event& event) {
    base::MutexLock lock(gathered.mu);
    if (const auto* tokens = std::get_if<engine::TokensEvent>(&event)) {
      if (!seen_first && !tokens->ids.empty()) gathered.last_first_token = Clock::now();
      seen_first = seen_first || !tokens->ids.empty();
      gathered.tokens += static_cast<int>(tokens->ids.size());
      return;
    }
    if (const auto* error = std::get_if<engine::ErrorEvent>(&event)) gathered.error = error->status;
    gathered.end = Clock::now();
    --gathered.left;
    gathered.changed.NotifyAll();
  }

  engine::Engine& engine_;
  std::mt19937 rng_{1};
};

}  // namespace

StatusOr<std::vector<BenchRow>> RunOfflineBench(engine::Engine& engine,
                                                const OfflineBenchOptions& options) {
  Bench bench(engine);
  HOLMES_RETURN_IF_ERROR(bench.Once(1, 32, 8).status());  // warm-up
  std::vector<BenchRow> rows;
  std::vector<double> prefill;
  for (int round = 0; round < options.rounds; ++round) {
    HOLMES_ASSIGN_OR_RETURN(const Timing timing, bench.Once(1, options.prompt_tokens, 1));
    prefill.push_back(options.prompt_tokens / timing.prefill_seconds);
  }
  rows.push_back({fmt::format("prefill {} tokens", options.prompt_tokens),
                  {{"tokens_per_s", Percentile(prefill, 50)}}});
  for (int batch = 1; batch <= options.max_batch; batch *= 2) {
    std::vector<double> speeds;
    for (int round = 0; round < options.rounds; ++round) {
      HOLMES_ASSIGN_OR_RETURN(const Timing timing, bench.Once(batch, 16, options.output_tokens));
      if (timing.decode_seconds > 0)
        speeds.push_back(timing.decoded_tokens / timing.decode_seconds);
    }
    const double speed = Percentile(speeds, 50);
    rows.push_back(
        {fmt::format("decode, batch {}", batch),
         {{"tokens_per_s", speed}, {"ms_per_step", speed > 0 ? 1e3 * batch / speed : 0}}});
  }
  return rows;
}

}  // namespace holmes::app
