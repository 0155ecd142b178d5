#include "engine/mailbox.h"

#include <fmt/format.h>

namespace holmes::engine {

StatusOr<RequestId> Mailbox::Submit(Submission submission) {
  RequestId id;
  {
    base::MutexLock lock(mu_);
    if (!refuse_.ok()) return refuse_;
    if (num_queued_ >= max_queued_) {
      return base::ResourceExhaustedError(
          fmt::format("{} requests are waiting, which is the limit; try again later", num_queued_));
    }
    id = RequestId{next_id_++};
    submission.spec.request = id;
    submission.output->id = id;
    live_.insert(id);
    ++num_queued_;
    contents_.submissions.push_back(std::move(submission));
  }
  changed_.NotifyOne();
  return id;
}

void Mailbox::Cancel(RequestId id) {
  {
    base::MutexLock lock(mu_);
    if (!live_.contains(id) || !cancelled_.insert(id).second) return;
    contents_.cancels.push_back(id);
  }
  changed_.NotifyOne();
}

void Mailbox::CancelAll() {
  {
    base::MutexLock lock(mu_);
    for (const RequestId id : live_) {
      if (cancelled_.insert(id).second) contents_.cancels.push_back(id);
    }
  }
  changed_.NotifyOne();
}

void Mailbox::Stopped(SequenceId id) {
  {
    base::MutexLock lock(mu_);
    contents_.stops.push_back(id);
  }
  changed_.NotifyOne();
}

void Mailbox::Closed(RequestId id) {
  {
    base::MutexLock lock(mu_);
    contents_.closed.push_back(id);
  }
  changed_.NotifyOne();
}

void Mailbox::StepDone(StatusOr<sched::StepResult> result) {
  {
    base::MutexLock lock(mu_);
    contents_.step.emplace(std::move(result));
  }
  changed_.NotifyOne();
}

void Mailbox::Refuse(Status why) {
  base::MutexLock lock(mu_);
  if (refuse_.ok()) refuse_ = std::move(why);
}

void Mailbox::Shutdown() {
  Refuse(base::UnavailableError("the engine has stopped"));
  CancelAll();
  {
    base::MutexLock lock(mu_);
    contents_.shutdown = true;
  }
  changed_.NotifyOne();
}

bool Mailbox::HasContents() const {
  return !contents_.submissions.empty() || !contents_.cancels.empty() || !contents_.stops.empty() ||
         !contents_.closed.empty() || contents_.step.has_value() || contents_.shutdown;
}

Mailbox::Contents Mailbox::Take() {
  base::MutexLock lock(mu_);
  while (!HasContents()) changed_.Wait(mu_);
  return std::exchange(contents_, Contents{});
}

void Mailbox::Dequeued(int count) {
  if (count == 0) return;
  base::MutexLock lock(mu_);
  num_queued_ -= count;
}

void Mailbox::Forget(RequestId id) {
  bool idle = false;
  {
    base::MutexLock lock(mu_);
    live_.erase(id);
    cancelled_.erase(id);
    idle = live_.empty();
  }
  if (idle) idle_.NotifyAll();
}

bool Mailbox::WaitIdle(base::Clock::TimePoint deadline) {
  base::MutexLock lock(mu_);
  while (!live_.empty()) {
    if (!idle_.WaitUntil(mu_, deadline)) return live_.empty();
  }
  return true;
}

void Mailbox::WaitIdle() {
  base::MutexLock lock(mu_);
  while (!live_.empty()) idle_.Wait(mu_);
}

}  // namespace holmes::engine
