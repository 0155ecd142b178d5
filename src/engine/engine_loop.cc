#include "engine/engine_loop.h"

#include <utility>

#include "base/log.h"
#include "base/thread_pool.h"

namespace holmes::engine {

EngineLoop::EngineLoop(Options options,
                       std::unique_ptr<sched::Scheduler> scheduler,
                       std::unique_ptr<exec::Backend> backend)
    : options_(options),
      mailbox_(options.max_queued_requests),
      backend_(std::move(backend)),
      scheduler_(std::move(scheduler)) {
  for (int i = 0; i < options_.output_workers; ++i) {
    workers_.push_back(std::make_unique<OutputWorker>(
        OutputWorker::Options{.tokenizer = options_.tokenizer,
                              .reports = &mailbox_,
                              .counters = &counters_,
                              .clock = options_.clock,
                              .name = "output-" + std::to_string(i)}));
  }
  outputs_.resize(workers_.size());
  PublishStats();
  executor_ = std::thread([this] {
    base::SetThreadName("executor");
    while (auto plan = plans_.Pop()) mailbox_.StepDone(backend_->Execute(*plan));
  });
  thread_ = std::thread([this] {
    base::SetThreadName("engine");
    Run();
  });
}

EngineLoop::~EngineLoop() {
  mailbox_.Shutdown();
  thread_.join();
  plans_.Close();
  executor_.join();
}

void EngineLoop::Run() {
  bool shutdown = false;
  while (!shutdown || !records_.empty() || executing_) {
    Mailbox::Contents contents = mailbox_.Take();
    shutdown = shutdown || contents.shutdown;
    TakeIn(contents);
    if (contents.step) FinishStep(*std::move(contents.step));
    if (!executing_) LaunchNext();
    PublishStats();
    ForgetClosed();
    FlushOutputs();
  }
}

void EngineLoop::TakeIn(Mailbox::Contents& contents) {
  for (Submission& submission : contents.submissions) TakeIn(submission);
  for (const RequestId id : contents.cancels) CancelRequest(id);
  for (const SequenceId id : contents.stops) scheduler_->End(id);
  for (const RequestId id : contents.closed) {
    scheduler_->Cancel(id);
    closed_.push_back(id);
    Dequeue(records_.at(id));
  }
}

void EngineLoop::TakeIn(Submission& submission) {
  const RequestId id = submission.spec.request;
  records_.emplace(id, Record{});
  const auto prompt_tokens = static_cast<std::uint64_t>(submission.output->prompt_tokens);
  Post(id, OpenOutput{std::move(submission.output)});
  Status status = failure_;
  if (status.ok()) status = scheduler_->Add(std::move(submission.spec)).status();
  if (!status.ok()) return Post(id, FailOutput{.request = id, .status = std::move(status)});
  counts_.prompt_tokens += prompt_tokens;
}

void EngineLoop::CancelRequest(RequestId id) {
  scheduler_->Cancel(id);
  Post(id, CancelOutput{id});
}

void EngineLoop::FinishStep(StatusOr<sched::StepResult> result) {
  executing_ = false;
  if (!result.ok()) return Fail(result.status());
  ++counts_.steps;
  for (sched::Accepted& accepted : scheduler_->Commit(*std::move(result))) PostAccepted(accepted);
}

void EngineLoop::PostAccepted(sched::Accepted& accepted) {
  if (accepted.ended == sched::EndReason::kError) {
    base::LogWarning("request {} failed alone: {}", accepted.request.value, accepted.error);
    return Post(accepted.request,
                FailOutput{.request = accepted.request,
                           .status = base::InternalError(std::move(accepted.error))});
  }
  if (accepted.tokens.empty()) return;  // inside the prompt
  counts_.generated_tokens += accepted.tokens.size();
  Post(accepted.request,
       TokensOutput{.request = accepted.request,
                    .sequence = accepted.sequence,
                    .sample_index = accepted.sample_index,
                    .tokens = std::move(accepted.tokens),
                    .ended = accepted.ended,
                    .cached_prompt_tokens = accepted.cached_prompt_tokens,
                    .started = records_.at(accepted.request).started});
}

void EngineLoop::LaunchNext() {
  if (!failure_.ok()) return;
  sched::Planned planned = scheduler_->Plan();
  for (const sched::Expired& expired : planned.expired) {
    Post(expired.request,
         FailOutput{.request = expired.request,
                    .status = base::DeadlineExceededError(
                        "the request's deadline passed before its answer was complete")});
  }
  for (const RequestId id : planned.started) {
    Record& record = records_.at(id);
    record.started = options_.clock->Now();
    Dequeue(record);
  }
  if (planned.plan.empty()) return;
  executing_ = true;
  plans_.Push(std::move(planned.plan));
}

void EngineLoop::Fail(const Status& status) {
  base::LogError("the back end failed, the engine stops: {}", status.ToString());
  failure_ = base::UnavailableError("the engine has stopped because its device failed: " +
                                    std::string(status.message()));
  mailbox_.Refuse(failure_);
  scheduler_->Abandon();
  for (const auto& [id, record] : records_) {
    scheduler_->Cancel(id);
    Post(id, FailOutput{.request = id, .status = failure_});
  }
}

void EngineLoop::ForgetClosed() {
  // A request whose last step still runs keeps its blocks until that is committed.
  std::erase_if(closed_, [this](RequestId id) {
    if (scheduler_->Contains(id)) return false;
    records_.erase(id);
    mailbox_.Forget(id);
    return true;
  });
}

void EngineLoop::Dequeue(Record& record) {
  if (std::exchange(record.queued, false)) mailbox_.Dequeued(1);
}

void EngineLoop::Post(RequestId id, OutputMessage message) {
  outputs_[id.value % outputs_.size()].push_back(std::move(message));
}

void EngineLoop::FlushOutputs() {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i].empty()) workers_[i]->Push(std::exchange(outputs_[i], {}));
  }
}

void EngineLoop::PublishStats() {
  const sched::SchedulerStats now = scheduler_->Stats();
  counts_.preemptions = now.preemptions;
  counts_.sequences_waiting = now.waiting;
  counts_.sequences_running = now.running;
  counts_.kv_blocks_total = now.kv_total;
  counts_.kv_blocks_used = now.kv_held;
  counts_.kv_blocks_cached = now.kv_cached;
  base::MutexLock lock(stats_mu_);
  stats_ = counts_;
}

EngineStats EngineLoop::Stats() const {
  EngineStats stats;
  {
    base::MutexLock lock(stats_mu_);
    stats = stats_;
  }
  stats.requests_finished = counters_.finished.load(std::memory_order_relaxed);
  stats.requests_cancelled = counters_.cancelled.load(std::memory_order_relaxed);
  stats.requests_failed = counters_.failed.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace holmes::engine
