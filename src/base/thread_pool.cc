#include "base/thread_pool.h"

#include <pthread.h>

#include <utility>

namespace holmes::base {

void SetThreadName(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

ThreadPool::ThreadPool(Options options) : queue_(options.queue_capacity) {
  threads_.reserve(options.num_threads);
  for (std::size_t i = 0; i < options.num_threads; ++i) {
    threads_.emplace_back([this, name = options.name + "-" + std::to_string(i)] {
      SetThreadName(name);
      while (auto job = queue_.Pop()) (*job)();
    });
  }
}

ThreadPool::~ThreadPool() {
  queue_.Close();
  for (std::thread& thread : threads_) thread.join();
}

bool ThreadPool::TrySubmit(std::function<void()> job) { return queue_.TryPush(std::move(job)); }

}  // namespace holmes::base
