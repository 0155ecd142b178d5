/// Speed of an engine in this process.
#pragma once

#include <vector>

#include "app/bench_stats.h"
#include "base/status.h"
#include "engine/engine.h"

namespace holmes::app {

struct OfflineBenchOptions {
  int prompt_tokens = 512;
  int output_tokens = 64;
  int max_batch = 16;  // decode is measured at 1, 2, 4 ... up to this many sequences
  int rounds = 3;      // the median counts
};

/// Prefill of one prompt and decode by batch size, in tokens per second. Prompts are random ids,
/// never twice the same. Errors: those of Engine::Submit and of requests that fail.
StatusOr<std::vector<BenchRow>> RunOfflineBench(engine::Engine& engine,
                                                const OfflineBenchOptions& options);

}  // namespace holmes::app
