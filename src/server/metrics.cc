#include "server/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace holmes::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Buckets = prometheus::Histogram::BucketBoundaries;

// Seconds. From a warm small model on a CPU (a millisecond) to a long prompt behind a queue
// (minutes).
const Buckets kFirstTokenBuckets = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160};
const Buckets kTokenBuckets = {
    0.001, 0.0025, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 1, 2.5};
const Buckets kRequestBuckets = {
    0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640};

prometheus::Histogram& AddHistogram(prometheus::Registry& registry,
                                    const char* name,
                                    const char* help,
                                    const Buckets& buckets) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, buckets);
}

std::string_view NameOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "ok";
    case Outcome::kCancelled:
      return "cancelled";
    case Outcome::kRejected:
      return "rejected";
    case Outcome::kFailed:
      return "failed";
  }
  return "failed";
}

MetricFamily Single(const char* name, const char* help, MetricType type, double value) {
  ClientMetric metric;
  if (type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  return {name, help, type, {std::move(metric)}};
}

void AppendEngine(const engine::EngineStats& stats, std::vector<MetricFamily>& out) {
  const auto counter = [&](const char* name, const char* help, std::uint64_t value) {
    out.push_back(Single(name, help, MetricType::Counter, static_cast<double>(value)));
  };
  const auto gauge = [&](const char* name, const char* help, double value) {
    out.push_back(Single(name, help, MetricType::Gauge, value));
  };
  counter("holmes_prompt_tokens_total", "Tokens of prompts taken.", stats.prompt_tokens);
  counter("holmes_generation_tokens_total", "Tokens generated.", stats.generated_tokens);
  counter("holmes_engine_steps_total", "Steps of the engine.", stats.steps);
  counter("holmes_preemptions_total", "Sequences put back to make room.", stats.preemptions);
  gauge("holmes_num_requests_running", "Sequences in the batch.", stats.sequences_running);
  gauge("holmes_num_requests_waiting",
        "Sequences that wait for their turn.",
        stats.sequences_waiting);
  gauge("holmes_kv_cache_usage_ratio",
        "KV blocks in use, of all.",
        stats.kv_blocks_total > 0
            ? static_cast<double>(stats.kv_blocks_used) / stats.kv_blocks_total
            : 0.0);
  gauge("holmes_kv_blocks", "KV blocks.", stats.kv_blocks_total);
  gauge("holmes_kv_blocks_cached",
        "KV blocks that are free but still hold a known prefix.",
        stats.kv_blocks_cached);
}

void AppendHttp(const net::HttpServerStats& stats, std::vector<MetricFamily>& out) {
  const auto counter = [&](const char* name, const char* help, std::uint64_t value) {
    out.push_back(Single(name, help, MetricType::Counter, static_cast<double>(value)));
  };
  counter("holmes_http_connections_total", "Connections accepted.", stats.connections_accepted);
  counter("holmes_http_connections_refused_total",
          "Connections over the limit.",
          stats.connections_refused);
  counter("holmes_http_requests_total", "Requests of any kind.", stats.requests);
  counter("holmes_http_bad_requests_total",
          "Requests that were no HTTP or over a limit.",
          stats.bad_requests);
  counter("holmes_http_disconnects_total",
          "Clients that left before their answer's end.",
          stats.disconnects);
  counter("holmes_http_slow_readers_total",
          "Streams cut because the client did not read.",
          stats.slow_readers);
  out.push_back(Single("holmes_http_connections_open",
                       "Connections now.",
                       MetricType::Gauge,
                       static_cast<double>(stats.connections_open)));
}

struct Alias {
  std::string_view name;
  const char* vllm;
};
// Source: vLLM's documentation, "Production Metrics"; gateways that balance by load read these
// names.
constexpr std::array kAliases = {
    Alias{"holmes_time_to_first_token_seconds", "vllm:time_to_first_token_seconds"},
    Alias{"holmes_time_per_output_token_seconds", "vllm:time_per_output_token_seconds"},
    Alias{"holmes_e2e_request_latency_seconds", "vllm:e2e_request_latency_seconds"},
    Alias{"holmes_prompt_tokens_total", "vllm:prompt_tokens_total"},
    Alias{"holmes_generation_tokens_total", "vllm:generation_tokens_total"},
    Alias{"holmes_preemptions_total", "vllm:num_preemptions_total"},
    Alias{"holmes_num_requests_running", "vllm:num_requests_running"},
    Alias{"holmes_num_requests_waiting", "vllm:num_requests_waiting"},
    Alias{"holmes_kv_cache_usage_ratio",
          "vllm:kv_cache_usage_perc"},  // a ratio there too, whatever its name says
};

void AppendAliases(const std::string& model_name, std::vector<MetricFamily>& families) {
  const std::size_t count = families.size();
  for (std::size_t i = 0; i < count; ++i) {
    for (const Alias& alias : kAliases) {
      if (families[i].name != alias.name) continue;
      MetricFamily copy = families[i];
      copy.name = alias.vllm;
      for (ClientMetric& metric : copy.metric) metric.label.push_back({"model_name", model_name});
      families.push_back(std::move(copy));
    }
  }
}

}  // namespace

Metrics::Metrics(std::string model_name)
    : model_name_(std::move(model_name)),
      requests_(prometheus::BuildCounter()
                    .Name("holmes_requests_total")
                    .Help("Requests of the API by how they ended.")
                    .Register(registry_)),
      first_token_(AddHistogram(registry_,
                                "holmes_time_to_first_token_seconds",
                                "From a request's arrival to its first token.",
                                kFirstTokenBuckets)),
      token_time_(AddHistogram(registry_,
                               "holmes_time_per_output_token_seconds",
                               "Mean time between the tokens of one sample.",
                               kTokenBuckets)),
      request_time_(AddHistogram(registry_,
                                 "holmes_e2e_request_latency_seconds",
                                 "From a request's arrival to the end of its answer.",
                                 kRequestBuckets)) {
  // All series exist from the start, so that a rate over them is right from the first request on.
  for (const Outcome outcome :
       {Outcome::kOk, Outcome::kCancelled, Outcome::kRejected, Outcome::kFailed}) {
    requests_.Add({{"outcome", std::string(NameOf(outcome))}});
  }
}

void Metrics::CountRequest(Outcome outcome) {
  requests_.Add({{"outcome", std::string(NameOf(outcome))}}).Increment();
}
void Metrics::ObserveFirstToken(std::chrono::duration<double> since_received) {
  first_token_.Observe(since_received.count());
}
void Metrics::ObserveTokenTime(std::chrono::duration<double> per_token) {
  token_time_.Observe(per_token.count());
}
void Metrics::ObserveRequest(std::chrono::duration<double> since_received) {
  request_time_.Observe(since_received.count());
}

std::string Metrics::Text(const engine::EngineStats& engine,
                          const net::HttpServerStats& http) const {
  std::vector<MetricFamily> families = registry_.Collect();
  AppendEngine(engine, families);
  AppendHttp(http, families);
  AppendAliases(model_name_, families);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace holmes::server
