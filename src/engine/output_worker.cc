#include "engine/output_worker.h"

#include <utility>

#include "base/thread_pool.h"

namespace holmes::engine {

OutputWorker::OutputWorker(Options options)
    : options_(std::move(options)), queue_(options_.queue_capacity) {
  thread_ = std::thread([this] {
    base::SetThreadName(options_.name);
    while (auto batch = queue_.Pop()) {
      for (OutputMessage& message : *batch) {
        std::visit([this](auto& m) { Handle(m); }, message);
      }
    }
  });
}

OutputWorker::~OutputWorker() {
  queue_.Close();
  thread_.join();
}

RequestOutput* OutputWorker::Find(RequestId id) {
  const auto it = requests_.find(id);
  return it == requests_.end() ? nullptr : it->second.get();
}

void OutputWorker::Handle(OpenOutput& message) {
  RequestOutput& request = *message.output;
  request.num_unfinished = static_cast<int>(request.samples.size());
  for (RequestOutput::Sample& sample : request.samples) {
    sample.output = std::make_unique<SampleOutput>(
        *options_.tokenizer, request.stops, request.options, request.prompt_tail);
  }
  requests_.emplace(request.id, std::move(message.output));
}

void OutputWorker::Handle(TokensOutput& message) {
  RequestOutput* request = Find(message.request);
  if (request == nullptr) return;
  RequestOutput::Sample& sample = request->samples[static_cast<std::size_t>(message.sample_index)];
  if (sample.finished) return;
  request->started = message.started;
  request->cached_prompt_tokens = message.cached_prompt_tokens;
  if (!sample.first_token) sample.first_token = options_.clock->Now();

  SampleOutput::Chunk chunk;
  for (std::size_t i = 0; i < message.tokens.size() && !sample.output->matched_stop(); ++i) {
    const bool is_end =
        message.ended == sched::EndReason::kEndToken && i + 1 == message.tokens.size();
    if (is_end) {
      sample.output->PushEnd(message.tokens[i], chunk);
    } else {
      sample.output->Push(message.tokens[i], chunk);
    }
  }
  request->sink(TokensEvent{.sample_index = message.sample_index,
                            .ids = std::move(chunk.ids),
                            .text = std::move(chunk.text),
                            .logprobs = std::move(chunk.logprobs)});
  if (sample.output->matched_stop()) {
    options_.reports->Stopped(message.sequence);
    Finish(*request, message.sample_index, FinishReason::kStop);
  } else if (message.ended) {
    Finish(
        *request,
        message.sample_index,
        message.ended == sched::EndReason::kEndToken ? FinishReason::kStop : FinishReason::kLength);
  }
  if (request->num_unfinished > 0) return;
  Close(message.request);
}

void OutputWorker::Finish(RequestOutput& request, int sample_index, FinishReason reason) {
  RequestOutput::Sample& sample = request.samples[static_cast<std::size_t>(sample_index)];
  SampleOutput::Chunk rest;
  sample.output->Finish(rest);
  // What was held back may have turned out to be a stop string (one that ends in U+FFFD).
  if (sample.output->matched_stop() && reason == FinishReason::kLength)
    reason = FinishReason::kStop;
  const base::Clock::TimePoint now = options_.clock->Now();
  sample.finished = true;
  // Counted before it is told, so that whoever has the last event finds it in the statistics.
  if (--request.num_unfinished == 0) {
    auto& counter = reason == FinishReason::kCancelled ? options_.counters->cancelled
                                                       : options_.counters->finished;
    counter.fetch_add(1, std::memory_order_relaxed);
  }
  request.sink(
      FinishEvent{.sample_index = sample_index,
                  .reason = reason,
                  .text = std::move(rest.text),
                  .logprobs = std::move(rest.logprobs),
                  .matched_stop = sample.output->matched_stop(),
                  .usage = {.prompt_tokens = request.prompt_tokens,
                            .cached_prompt_tokens = request.cached_prompt_tokens,
                            .completion_tokens = sample.output->num_tokens()},
                  .timings = {.queued = request.started.value_or(now) - request.submitted,
                              .time_to_first = sample.first_token.value_or(now) - request.submitted,
                              .total = now - request.submitted}});
}

void OutputWorker::Handle(CancelOutput& message) {
  RequestOutput* request = Find(message.request);
  if (request == nullptr) return;
  for (std::size_t i = 0; i < request->samples.size(); ++i) {
    if (!request->samples[i].finished)
      Finish(*request, static_cast<int>(i), FinishReason::kCancelled);
  }
  Close(message.request);
}

void OutputWorker::Handle(FailOutput& message) {
  RequestOutput* request = Find(message.request);
  if (request == nullptr) return;
  options_.counters->failed.fetch_add(1, std::memory_order_relaxed);
  request->sink(ErrorEvent{.status = std::move(message.status)});
  Close(message.request);
}

void OutputWorker::Close(RequestId id) {
  requests_.erase(id);
  options_.reports->Closed(id);
}

}  // namespace holmes::engine
