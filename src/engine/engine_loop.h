/// The engine thread: plan, launch, commit.
#pragma once

#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/bounded_queue.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/mailbox.h"
#include "engine/output_worker.h"
#include "exec/backend.h"
#include "sched/scheduler.h"

namespace holmes::engine {

/// Owns scheduler, back end and output workers, and the threads that use them. While a step runs on
/// the executor thread, the engine thread hands on the outputs of the step before and takes in what
/// arrives; it sleeps when there is nothing. Destruction cancels what is live and joins all
/// threads.
class EngineLoop {
 public:
  struct Options {
    int max_queued_requests = 0;
    int output_workers = 1;
    const text::Tokenizer* tokenizer = nullptr;
    const base::Clock* clock = nullptr;
  };
  EngineLoop(Options options,
             std::unique_ptr<sched::Scheduler> scheduler,
             std::unique_ptr<exec::Backend> backend);
  ~EngineLoop();
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

  /// Thread-safe.
  Mailbox& mailbox() { return mailbox_; }
  /// Thread-safe. As of the last step or change.
  EngineStats Stats() const;

 private:
  /// What the engine thread knows of a request that is live.
  struct Record {
    base::Clock::TimePoint started;
    bool queued = true;   // counts against max_queued_requests
    bool closed = false;  // its last event was sent
  };

  void Run();
  void TakeIn(Mailbox::Contents& contents);
  void TakeIn(Submission& submission);
  void CancelRequest(RequestId id);
  void FinishStep(StatusOr<sched::StepResult> result);
  void LaunchNext();
  void Fail(const Status& status);
  void ForgetClosed();
  void Dequeue(Record& record);
  void Post(RequestId id, OutputMessage message);
  void PostAccepted(sched::Accepted& accepted);
  void FlushOutputs();
  void PublishStats();

  const Options options_;
  Mailbox mailbox_;
  OutputCounters counters_;
  std::unique_ptr<exec::Backend> backend_;              // executor thread only, after construction
  base::BoundedQueue<sched::StepPlan> plans_{1};        // to the executor thread
  std::vector<std::unique_ptr<OutputWorker>> workers_;  // a request belongs to worker id % size

  // Engine thread only.
  std::unique_ptr<sched::Scheduler> scheduler_;
  std::unordered_map<RequestId, Record> records_;
  std::vector<RequestId> closed_;  // to be forgotten once the scheduler has let go of them
  std::vector<std::vector<OutputMessage>> outputs_;  // by worker
  bool executing_ = false;
  Status failure_;  // the back end's, for good
  EngineStats counts_;

  mutable base::Mutex stats_mu_;
  EngineStats stats_ HOLMES_GUARDED_BY(stats_mu_);

  std::thread executor_;
  std::thread thread_;
};

}  // namespace holmes::engine
