/// The engine: scheduler, back end and output workers joined.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "engine/engine.h"
#include "exec/backend.h"
#include "text/tokenizer.h"

namespace holmes::engine {

/// 0 means what the back end allows.
struct EngineOptions {
  int max_tokens_per_step = 0;
  int max_rows_per_step = 0;  // also the number of sequences that run at a time
  /// Prompt tokens per step while answers stream; see sched::SchedulerOptions.
  int max_prefill_tokens_per_step = 0;
  int max_queued_requests = 4096;  // submitted and not started; more are refused
  int max_samples = 128;           // of one request
  bool prefix_reuse = true;        // keep the KV of full blocks for requests that begin the same
  int output_workers = 1;
};

/// Starts the engine thread, the executor thread and the output workers. `clock` outlives the
/// engine. `end_of_generation` are the ids that end an answer unless a request ignores them.
/// `model.context_tokens` is lowered to what back end and KV hold. Destroying the engine cancels
/// what runs; every sink has had its last event and is gone when the destructor returns. Errors:
/// kInvalidArgument (options or back end that cannot work).
StatusOr<std::unique_ptr<Engine>> CreateEngine(EngineOptions options,
                                               std::unique_ptr<exec::Backend> backend,
                                               std::unique_ptr<const text::Tokenizer> tokenizer,
                                               ModelInfo model,
                                               std::vector<TokenId> end_of_generation,
                                               const base::Clock& clock = base::Clock::Real());

}  // namespace holmes::engine
