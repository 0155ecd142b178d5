/// Signals as calls on an ordinary thread.
#pragma once

#include <functional>
#include <vector>

#include "base/mutex.h"

namespace holmes::app {

/// Make one before other threads start: they inherit that the signals are blocked, and one thread
/// of this object takes them. Without a handler a signal ends the process at once with exit code
/// 128 + its number. Thread-safe.
class SignalWatch {
 public:
  explicit SignalWatch(std::vector<int> signals);
  /// The handler is gone when this returns; the signals stay blocked.
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  using Handler = std::function<void(int signal)>;
  /// Called with the lock held: must be short and must not call OnSignal. Null: as at the
  /// beginning.
  void OnSignal(Handler handler);

 private:
  /// Shared with a thread that never ends, so it is never freed.
  struct State {
    std::vector<int> signals;
    base::Mutex mu;
    Handler handler HOLMES_GUARDED_BY(mu);
  };
  static void Watch(State* state);

  State* const state_;
};

}  // namespace holmes::app
