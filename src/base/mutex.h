/// std::mutex with the annotations that clang's -Wthread-safety reads
/// (https://clang.llvm.org/docs/ThreadSafetyAnalysis.html).
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define HOLMES_THREAD_ANNOTATION_(x) __attribute__((x))
#else
#define HOLMES_THREAD_ANNOTATION_(x)
#endif
#define HOLMES_GUARDED_BY(x) HOLMES_THREAD_ANNOTATION_(guarded_by(x))
#define HOLMES_REQUIRES(...) HOLMES_THREAD_ANNOTATION_(requires_capability(__VA_ARGS__))
#define HOLMES_EXCLUDES(...) HOLMES_THREAD_ANNOTATION_(locks_excluded(__VA_ARGS__))

namespace holmes::base {

class HOLMES_THREAD_ANNOTATION_(capability("mutex")) Mutex {
 public:
  void lock() HOLMES_THREAD_ANNOTATION_(acquire_capability()) { mu_.lock(); }
  void unlock() HOLMES_THREAD_ANNOTATION_(release_capability()) { mu_.unlock(); }
  bool try_lock() HOLMES_THREAD_ANNOTATION_(try_acquire_capability(true)) { return mu_.try_lock(); }

 private:
  std::mutex mu_;
};

class HOLMES_THREAD_ANNOTATION_(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mu) HOLMES_THREAD_ANNOTATION_(acquire_capability(mu)) : mu_(mu) {
    mu_.lock();
  }
  ~MutexLock() HOLMES_THREAD_ANNOTATION_(release_capability()) { mu_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

/// A condition variable that waits on a held Mutex.
class CondVar {
 public:
  /// Precondition: the caller holds `mu`; it does again on return.
  void Wait(Mutex& mu) HOLMES_REQUIRES(mu) { cv_.wait(mu); }
  /// False when the time point passed first.
  template <typename Clock, typename Duration>
  bool WaitUntil(Mutex& mu, std::chrono::time_point<Clock, Duration> deadline) HOLMES_REQUIRES(mu) {
    return cv_.wait_until(mu, deadline) == std::cv_status::no_timeout;
  }
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable_any cv_;
};

}  // namespace holmes::base
