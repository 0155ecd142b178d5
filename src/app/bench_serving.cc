#include "app/bench_serving.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "api/json_writer.h"
#include "app/openai_client.h"
#include "base/mutex.h"
#include "net/http_client.h"

namespace holmes::app {
namespace {

using Clock = std::chrono::steady_clock;

struct Measured {
  double ttft_ms = 0;
  double tpot_ms = 0;
  int output_tokens = 0;
};

double Milliseconds(Clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

std::string Words(std::mt19937& rng, int count) {
  static constexpr const char* kWords[] = {"river",
                                           "stone",
                                           "winter",
                                           "market",
                                           "engine",
                                           "letter",
                                           "garden",
                                           "silver",
                                           "morning",
                                           "paper",
                                           "window",
                                           "music"};
  std::string out = "Write a long story about";
  for (int i = 0; i < count; ++i) out += fmt::format(" {}", kWords[rng() % std::size(kWords)]);
  return out;
}

std::string Body(const ServingBenchOptions& options, int index) {
  // Of both, so that another seed shares no prompt with this one.
  std::seed_seq seeds{options.seed, static_cast<std::int64_t>(index)};
  std::mt19937 rng(seeds);
  api::JsonWriter json;
  json.BeginObject();
  json.Key("model").String(options.model).Key("messages").BeginArray().BeginObject();
  json.Key("role")
      .String("user")
      .Key("content")
      .String(Words(rng, options.prompt_words))
      .EndObject()
      .EndArray();
  json.Key("max_tokens")
      .Int(options.output_tokens)
      .Key("temperature")
      .Number(0)
      .Key("stream")
      .Bool(true);
  json.Key("stream_options").BeginObject().Key("include_usage").Bool(true).EndObject().EndObject();
  return json.Take();
}

StatusOr<Measured> OneRequest(const ServingBenchOptions& options,
                              const Endpoint& endpoint,
                              int index) {
  const net::ClientRequest request =
      MakeRequest(endpoint, "/chat/completions", Body(options, index));
  const Clock::time_point start = Clock::now();
  Clock::time_point first{};
  Clock::time_point last{};
  Clock::time_point ended{};
  int text_events = 0;
  int counted = 0;
  Status broken;
  const StatusOr<net::ClientResponse> response =
      net::FetchEvents(request, [&](net::SseEvent&& event) {
        if (event.data == "[DONE]") return true;
        const StatusOr<StreamChunk> chunk = ParseChunk(event.data);
        if (!chunk.ok()) {
          broken = chunk.status();
          return false;
        }
        ended = Clock::now();
        if (chunk->has_usage) counted = chunk->completion_tokens;
        if (chunk->text.empty()) return true;
        last = Clock::now();
        if (text_events++ == 0) first = last;
        return true;
      });
  HOLMES_RETURN_IF_ERROR(broken);
  HOLMES_RETURN_IF_ERROR(response.status());
  HOLMES_RETURN_IF_ERROR(ErrorOf(*response));
  // Ended at once, or inside a character: tokens without text.
  if (text_events == 0 && counted > 0) return Measured{Milliseconds(ended - start), 0, counted};
  if (text_events == 0) return base::UnavailableError("the answer has no text");
  const int tokens = counted > 0 ? counted : text_events;
  return Measured{Milliseconds(first - start),
                  tokens > 1 ? Milliseconds(last - first) / (tokens - 1) : 0,
                  tokens};
}

/// Runs all requests; `start_of` gives when each may begin.
class Load {
 public:
  Load(const ServingBenchOptions& options, const Endpoint& endpoint)
      : options_(options), endpoint_(endpoint) {}

  StatusOr<std::vector<BenchRow>> Run() {
    PlanArrivals();
    const Clock::time_point start = Clock::now();
    std::vector<std::thread> threads;
    for (int i = 0; i < options_.concurrency; ++i)
      threads.emplace_back([this, start] { Work(start); });
    for (std::thread& thread : threads) thread.join();
    return Report(Milliseconds(Clock::now() - start) / 1e3);
  }

 private:
  void PlanArrivals() {
    std::mt19937_64 rng(static_cast<std::uint64_t>(options_.seed));
    std::exponential_distribution<double> gap(options_.rate > 0 ? options_.rate : 1);
    double at = 0;
    for (int i = 0; i < options_.num_requests; ++i) {
      arrivals_s_.push_back(options_.rate > 0 ? at : 0);
      at += gap(rng);
    }
  }

  void Work(Clock::time_point start) {
    for (int i = next_.fetch_add(1); i < options_.num_requests; i = next_.fetch_add(1)) {
      std::this_thread::sleep_until(
          start + std::chrono::duration_cast<Clock::duration>(
                      std::chrono::duration<double>(arrivals_s_[static_cast<std::size_t>(i)])));
      StatusOr<Measured> measured = OneRequest(options_, endpoint_, i);
      base::MutexLock lock(mu_);
      if (measured.ok()) {
        done_.push_back(*measured);
      } else {
        ++failed_;
        if (first_error_.ok()) first_error_ = measured.status();
      }
    }
  }

  StatusOr<std::vector<BenchRow>> Report(double seconds) {
    base::MutexLock lock(mu_);
    if (done_.empty())
      return base::UnavailableError(
          fmt::format("no request succeeded; the first failed with: {}", first_error_.message()));
    std::vector<double> ttft;
    std::vector<double> tpot;
    double tokens = 0;
    for (const Measured& m : done_) {
      ttft.push_back(m.ttft_ms);
      tpot.push_back(m.tpot_ms);
      tokens += m.output_tokens;
    }
    const auto spread = [](const char* name, const std::vector<double>& samples) {
      return BenchRow{name,
                      {{"p50", Percentile(samples, 50)},
                       {"p95", Percentile(samples, 95)},
                       {"p99", Percentile(samples, 99)}}};
    };
    return std::vector<BenchRow>{
        {"requests",
         {{"succeeded", static_cast<double>(done_.size())},
          {"failed", static_cast<double>(failed_)},
          {"seconds", seconds}}},
        {"throughput",
         {{"tokens_per_s", tokens / seconds},
          {"requests_per_s", static_cast<double>(done_.size()) / seconds}}},
        spread("ttft_ms", ttft),
        spread("tpot_ms", tpot)};
  }

  const ServingBenchOptions& options_;
  const Endpoint& endpoint_;
  std::vector<double> arrivals_s_;
  std::atomic<int> next_{0};
  base::Mutex mu_;
  std::vector<Measured> done_ HOLMES_GUARDED_BY(mu_);
  int failed_ HOLMES_GUARDED_BY(mu_) = 0;
  Status first_error_ HOLMES_GUARDED_BY(mu_);
};

}  // namespace

StatusOr<std::vector<BenchRow>> RunServingBench(const ServingBenchOptions& options) {
  if (options.url.empty())
    return base::InvalidArgumentError("--url is empty; http://host:port is expected");
  const Endpoint endpoint = MakeEndpoint(options.url, options.api_key);
  ServingBenchOptions named = options;
  if (named.model.empty()) {
    HOLMES_ASSIGN_OR_RETURN(named.model, FirstModel(endpoint));
  }
  return Load(named, endpoint).Run();
}

}  // namespace holmes::app
