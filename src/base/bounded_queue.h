/// The hand-over between threads: a queue of moved values with a limit.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "base/mutex.h"

namespace holmes::base {

/// Many producers, many consumers, first in first out. Thread-safe.
/// Invariants: size() <= capacity(); after Close() nothing enters, what is inside can still be
/// taken.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  /// False, with `value` untouched, when the queue is full or closed. Never blocks.
  bool TryPush(T&& value) {
    {
      MutexLock lock(mu_);
      if (closed_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(value));
    }
    not_empty_.NotifyOne();
    return true;
  }

  /// Waits for room. False, with `value` untouched, when the queue is or becomes closed.
  bool Push(T&& value) {
    {
      MutexLock lock(mu_);
      while (!closed_ && items_.size() >= capacity_) not_full_.Wait(mu_);
      if (closed_) return false;
      items_.push_back(std::move(value));
    }
    not_empty_.NotifyOne();
    return true;
  }

  /// Waits for an item. Empty when the queue is closed and drained.
  std::optional<T> Pop() {
    std::optional<T> out;
    {
      MutexLock lock(mu_);
      while (!closed_ && items_.empty()) not_empty_.Wait(mu_);
      out = TakeFront();
    }
    if (out) not_full_.NotifyOne();
    return out;
  }

  /// As Pop, but gives up at `deadline`.
  template <typename Clock, typename Duration>
  std::optional<T> PopUntil(std::chrono::time_point<Clock, Duration> deadline) {
    std::optional<T> out;
    {
      MutexLock lock(mu_);
      while (!closed_ && items_.empty()) {
        if (!not_empty_.WaitUntil(mu_, deadline)) break;
      }
      out = TakeFront();
    }
    if (out) not_full_.NotifyOne();
    return out;
  }

  /// Empty when there is nothing right now. Never blocks.
  std::optional<T> TryPop() {
    std::optional<T> out;
    {
      MutexLock lock(mu_);
      out = TakeFront();
    }
    if (out) not_full_.NotifyOne();
    return out;
  }

  void Close() {
    {
      MutexLock lock(mu_);
      closed_ = true;
    }
    not_empty_.NotifyAll();
    not_full_.NotifyAll();
  }

  std::size_t size() const {
    MutexLock lock(mu_);
    return items_.size();
  }
  std::size_t capacity() const { return capacity_; }

 private:
  std::optional<T> TakeFront() HOLMES_REQUIRES(mu_) {
    if (items_.empty()) return std::nullopt;
    std::optional<T> out(std::move(items_.front()));
    items_.pop_front();
    return out;
  }

  const std::size_t capacity_;
  mutable Mutex mu_;
  CondVar not_empty_;
  CondVar not_full_;
  std::deque<T> items_ HOLMES_GUARDED_BY(mu_);
  bool closed_ HOLMES_GUARDED_BY(mu_) = false;
};

}  // namespace holmes::base
