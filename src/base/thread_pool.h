/// A pool of worker threads for short independent jobs (tokenizing, templates, detokenizing). Not
/// for kernels: those have their own team.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/bounded_queue.h"

namespace holmes::base {

/// Thread-safe. The destructor runs what was accepted, then joins.
class ThreadPool {
 public:
  struct Options {
    std::size_t num_threads = 1;
    /// Jobs that may wait; TrySubmit says no beyond it.
    std::size_t queue_capacity = 1024;
    /// Shown in the process list, cut to 15 characters.
    std::string name = "worker";
  };
  explicit ThreadPool(Options options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// False, without running it, when the queue is full. A job must not throw.
  bool TrySubmit(std::function<void()> job);
  std::size_t num_queued() const { return queue_.size(); }

 private:
  BoundedQueue<std::function<void()>> queue_;
  std::vector<std::thread> threads_;
};

/// Names the calling thread in the process list.
void SetThreadName(const std::string& name);

}  // namespace holmes::base
