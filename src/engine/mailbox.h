/// Everything that reaches the engine thread.
#pragma once

#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/output_worker.h"
#include "sched/sequence.h"
#include "sched/step_plan.h"

namespace holmes::engine {

/// A request on its way to the scheduler.
struct Submission {
  sched::SequenceGroup spec;
  std::unique_ptr<RequestOutput> output;
};

/// Thread-safe. Invariants:
///  1. Only submissions can be refused; all else is bounded by the live requests (one cancel and
///  one close each, one stop per sample, one step).
///  2. A request is live from Submit until Forget; after Forget(id) nothing with that id comes out
///  any more.
class Mailbox final : public OutputReports {
 public:
  struct Contents {
    std::vector<Submission> submissions;
    std::vector<RequestId> cancels;
    std::vector<SequenceId> stops;  // stop strings were found in their text
    std::vector<RequestId> closed;  // their last event was sent
    std::optional<StatusOr<sched::StepResult>> step;
    bool shutdown = false;
  };
  explicit Mailbox(int max_queued) : max_queued_(max_queued) {}

  /// Gives the request its id (in spec and output). Errors: kResourceExhausted, or the status of
  /// Refuse.
  StatusOr<RequestId> Submit(Submission submission);
  void Cancel(RequestId id);
  void CancelAll();
  void Stopped(SequenceId id) override;
  void Closed(RequestId id) override;
  void StepDone(StatusOr<sched::StepResult> result);
  /// From now on Submit returns `why`, if nothing before said so.
  void Refuse(Status why);
  /// Also cancels what is live.
  void Shutdown();

  /// Waits until there is something. Engine thread only.
  Contents Take();
  /// `count` requests have left the queue: started or ended. Engine thread only.
  void Dequeued(int count);
  /// Nothing of the request is left anywhere. Engine thread only.
  void Forget(RequestId id);

  /// Waits until no request is live. False when the deadline came first.
  bool WaitIdle(base::Clock::TimePoint deadline);
  void WaitIdle();

 private:
  bool HasContents() const HOLMES_REQUIRES(mu_);

  const int max_queued_;
  base::Mutex mu_;
  base::CondVar changed_;
  base::CondVar idle_;
  Contents contents_ HOLMES_GUARDED_BY(mu_);
  std::unordered_set<RequestId> live_ HOLMES_GUARDED_BY(mu_);
  std::unordered_set<RequestId> cancelled_ HOLMES_GUARDED_BY(mu_);  // of the live ones
  Status refuse_ HOLMES_GUARDED_BY(mu_);
  int num_queued_ HOLMES_GUARDED_BY(mu_) = 0;
  std::uint64_t next_id_ HOLMES_GUARDED_BY(mu_) = 1;
};

}  // namespace holmes::engine
