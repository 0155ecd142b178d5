/// Load on any server with OpenAI's API.
#pragma once

#include <string>
#include <vector>

#include "app/bench_stats.h"
#include "base/status.h"

namespace holmes::app {

struct ServingBenchOptions {
  std::string url;    // http://host:port, also with /v1
  std::string model;  // empty = the first that the server lists
  std::string api_key;
  int num_requests = 32;
  int concurrency = 8;  // requests in flight in the closed loop; the most threads in the open one
  double rate = 0;      // requests per second with Poisson arrivals; 0 = closed loop
  int prompt_words = 100;
  int output_tokens = 96;
  std::int64_t seed = 1;
};

/// Streams chat requests and measures time to first token (TTFT), time per output token (TPOT) and
/// throughput as a client sees them. Errors: kInvalidArgument for a URL that cannot be used;
/// those of FirstModel where no model is named; kUnavailable when no request succeeded (with the
/// first reason).
StatusOr<std::vector<BenchRow>> RunServingBench(const ServingBenchOptions& options);

}  // namespace holmes::app
