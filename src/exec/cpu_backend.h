/// The CPU back end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"
#include "exec/backend.h"
#include "kernels/cpu_features.h"
#include "model/graph.h"

namespace holmes::exec {

struct CpuBackendOptions {
  kernels::Isa isa = kernels::Isa::kScalar;
  int num_threads = 1;
  /// Longest sequence; 0 = the model's own. Never above the model's.
  int context_tokens = 0;
  /// Memory for KV blocks; 0 = room for one whole context, at least 24,576 tokens.
  std::int64_t kv_cache_bytes = 0;
  int max_tokens_per_step = 512;
  int max_rows_per_step = 64;
  /// Told how many of the model's operations are packed, on the calling thread.
  std::function<void(int done, int total)> on_packed;
};

/// Packs the weights and takes all memory. The graph's ModelSource may be closed afterwards.
/// Errors: kResourceExhausted when weights, KV and activations do not fit into what the machine or
/// its cgroup has free: says how much is needed for what, how much there is, and which option
/// helps.
StatusOr<std::unique_ptr<Backend>> CreateCpuBackend(const model::Graph& graph,
                                                    const CpuBackendOptions& options);

}  // namespace holmes::exec
