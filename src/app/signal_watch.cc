#include "app/signal_watch.h"

#include <pthread.h>
#include <signal.h>

#include <cstdlib>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/thread_pool.h"

namespace holmes::app {
namespace {

sigset_t SetOf(const std::vector<int>& signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

}  // namespace

SignalWatch::SignalWatch(std::vector<int> signals) : state_(new State) {
  state_->signals = std::move(signals);
  const sigset_t set = SetOf(state_->signals);
  HOLMES_CHECK(::pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
  std::thread([state = state_] { Watch(state); }).detach();
}

SignalWatch::~SignalWatch() { OnSignal(nullptr); }

void SignalWatch::OnSignal(Handler handler) {
  base::MutexLock lock(state_->mu);
  state_->handler = std::move(handler);
}

void SignalWatch::Watch(State* state) {
  base::SetThreadName("signals");
  const sigset_t set = SetOf(state->signals);
  while (true) {
    int signal = 0;
    if (::sigwait(&set, &signal) != 0) continue;
    base::MutexLock lock(state->mu);
    if (!state->handler) std::_Exit(128 + signal);
    state->handler(signal);
  }
}

}  // namespace holmes::app
