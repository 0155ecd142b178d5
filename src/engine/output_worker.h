/// Tokens to events, off the engine thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "engine/request.h"
#include "engine/sample_output.h"
#include "sched/sequence.h"

namespace holmes::engine {

/// One request's output: owned by its worker from OpenOutput to its last event. Destroying it
/// destroys the sink.
struct RequestOutput {
  RequestId id;
  EventSink sink;
  text::StopSet stops;
  SampleOutput::Options options;
  int prompt_tokens = 0;
  std::vector<TokenId> prompt_tail;  // its last tokens, enough for the longest character
  base::Clock::TimePoint submitted;

  struct Sample {
    std::unique_ptr<SampleOutput> output;
    std::optional<base::Clock::TimePoint> first_token;
    bool finished = false;
  };
  std::vector<Sample> samples;  // index = sample_index
  int num_unfinished = 0;
  int cached_prompt_tokens = 0;
  std::optional<base::Clock::TimePoint> started;
};

struct OpenOutput {
  std::unique_ptr<RequestOutput> output;
};
struct TokensOutput {
  RequestId request;
  SequenceId sequence;
  int sample_index = 0;
  std::vector<sched::SampledToken> tokens;
  std::optional<sched::EndReason> ended;  // never kError
  int cached_prompt_tokens = 0;
  base::Clock::TimePoint started;  // the request's first planned step
};
struct FailOutput {
  RequestId request;
  Status status;
};
struct CancelOutput {
  RequestId request;
};
using OutputMessage = std::variant<OpenOutput, TokensOutput, FailOutput, CancelOutput>;

/// What a worker tells the engine. Thread-safe; never blocks.
class OutputReports {
 public:
  virtual ~OutputReports() = default;
  /// A stop string ended this sequence's text: what it computes from now on is dropped.
  virtual void Stopped(SequenceId id) = 0;
  /// The request's last event was sent and its sink destroyed.
  virtual void Closed(RequestId id) = 0;
};

/// Counted by request, at its last event.
struct OutputCounters {
  std::atomic<std::uint64_t> finished{0};
  std::atomic<std::uint64_t> cancelled{0};
  std::atomic<std::uint64_t> failed{0};
};

/// One thread that owns the output of its requests. Messages about requests that are closed are
/// dropped.
class OutputWorker {
 public:
  struct Options {
    const text::Tokenizer* tokenizer = nullptr;
    OutputReports* reports = nullptr;
    OutputCounters* counters = nullptr;
    const base::Clock* clock = nullptr;
    std::size_t queue_capacity = 256;  // batches
    std::string name;
  };
  explicit OutputWorker(Options options);
  /// Handles what was pushed, then ends.
  ~OutputWorker();
  OutputWorker(const OutputWorker&) = delete;
  OutputWorker& operator=(const OutputWorker&) = delete;

  /// Waits while the queue is full, which is while sinks are slower than the model.
  void Push(std::vector<OutputMessage> batch) { queue_.Push(std::move(batch)); }

 private:
  void Handle(OpenOutput& message);
  void Handle(TokensOutput& message);
  void Handle(FailOutput& message);
  void Handle(CancelOutput& message);
  void Finish(RequestOutput& request, int sample_index, FinishReason reason);
  void Close(RequestId id);
  RequestOutput* Find(RequestId id);

  const Options options_;
  base::BoundedQueue<std::vector<OutputMessage>> queue_;
  std::unordered_map<RequestId, std::unique_ptr<RequestOutput>> requests_;  // worker thread only
  std::thread thread_;
};

}  // namespace holmes::engine
