#include "kernels/team/team.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "base/thread_pool.h"

namespace holmes::kernels {
namespace {

/// About 30 µs of pause instructions (some 40 ns each on current server cores): longer than the
/// gaps inside a step, shorter than a scheduler tick.
constexpr int kSpins = 800;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Waits until `value` is no longer `old`.
void WaitWhile(const std::atomic<std::uint32_t>& value, std::uint32_t old, bool spin) {
  for (int i = 0; spin && i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    Pause();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

/// The cgroup's CPU quota in CPUs; 0 when there is none.
int QuotaCpus() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period && quota != "max" && period > 0)
    return static_cast<int>(std::ceil(std::atof(quota.c_str()) / period));
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double us = 0;
  if (v1_quota >> us && v1_period >> period && us > 0 && period > 0)
    return static_cast<int>(std::ceil(us / period));
  return 0;
}

}  // namespace

int AllowedCpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  const int allowed = sched_getaffinity(0, sizeof(mask), &mask) == 0
                          ? CPU_COUNT(&mask)
                          : static_cast<int>(std::thread::hardware_concurrency());
  const int quota = QuotaCpus();
  return std::max(1, quota > 0 ? std::min(allowed, quota) : allowed);
}

Team::Team(Options options) : size_(std::max(1, options.num_threads)) {
  for (int member = 1; member < size_; ++member) {
    threads_.emplace_back([this, member] {
      base::SetThreadName("compute-" + std::to_string(member));
      Work(member);
    });
  }
}

Team::~Team() {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Team::RunErased(Function function, void* context) {
  if (size_ == 1) {
    function(context, 0, 1);
    Barrier();
    return;
  }
  function_ = function;
  context_ = context;
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  function(context, 0, size_);
  Barrier();  // the members' last arrival is the join
}

void Team::Work(int member) {
  std::uint32_t seen = 0;
  // With more members than CPUs, spinning would only keep the one awaited from running.
  const bool spin = size_ <= AllowedCpus();
  while (true) {
    WaitWhile(epoch_, seen, spin);
    ++seen;
    if (stop_.load(std::memory_order_relaxed)) return;
    function_(context_, member, size_);
    Barrier();
  }
}

void Team::Barrier() {
  if (size_ == 1) {
    next_claim_.store(0, std::memory_order_relaxed);
    return;
  }
  static const int cpus = AllowedCpus();
  const std::uint32_t generation = generation_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(size_)) {
    arrived_.store(0, std::memory_order_relaxed);
    next_claim_.store(0, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
    return;
  }
  WaitWhile(generation_, generation, size_ <= cpus);
}

}  // namespace holmes::kernels
