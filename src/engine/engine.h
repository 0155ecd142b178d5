/// The one door to a model: requests in, events out. Server, `run`, `bench` and tests all use it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "engine/request.h"
#include "text/tokenizer.h"

namespace holmes::engine {

struct EngineStats {
  std::uint64_t steps = 0;
  std::uint64_t requests_submitted = 0;
  std::uint64_t requests_finished = 0;
  std::uint64_t requests_cancelled = 0;
  std::uint64_t requests_failed = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t generated_tokens = 0;
  std::uint64_t preemptions = 0;
  int sequences_waiting = 0;
  int sequences_running = 0;
  int kv_blocks_total = 0;
  int kv_blocks_used = 0;    // referenced by a sequence
  int kv_blocks_cached = 0;  // free to evict, content still known
};

/// Facts about the served model that a front end needs. Constant after start.
struct ModelInfo {
  std::string name;
  std::string architecture;
  int vocab_size = 0;
  int context_tokens = 0;  // prompt and output together
  std::string chat_template;
  std::string bos_text;
  std::string eos_text;
};

/// Thread-safe.
class Engine {
 public:
  virtual ~Engine() = default;

  /// Takes the request and returns at once. Events arrive at `sink` until the last one.
  /// Errors (nothing is sent to the sink then): kInvalidArgument (empty prompt, id out of range,
  /// prompt longer than the context: the message has both numbers), kResourceExhausted (queue full:
  /// try again later), kUnavailable (draining or stopped).
  virtual StatusOr<Submitted> Submit(Request request, EventSink sink) = 0;

  /// Ends a request in any state. Its sink gets FinishEvent{kCancelled} per unfinished sample
  /// unless it finished first; unknown ids are ignored.
  virtual void Cancel(RequestId id) = 0;

  /// Refuses new requests, lets running ones finish until `deadline`, then cancels the rest. True
  /// when nothing had to be cancelled.
  virtual bool Drain(base::Clock::TimePoint deadline) = 0;

  virtual EngineStats Stats() const = 0;
  virtual const ModelInfo& model() const = 0;
  virtual const text::Tokenizer& tokenizer() const = 0;
};

}  // namespace holmes::engine
