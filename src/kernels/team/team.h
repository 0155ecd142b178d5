/// The compute threads: fork, join and barriers that cost few microseconds while work flows and
/// nothing when it does not.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace holmes::kernels {

/// CPUs that this process may use: its affinity mask, cut by the cgroup's CPU quota (rounded up).
/// At least 1.
int AllowedCpus();

/// A fixed number of members; member 0 is the thread that calls Run. One Run at a time.
/// Waiting members spin for some tens of microseconds, then sleep in the kernel, so an idle team
/// uses no CPU.
class Team {
 public:
  struct Options {
    int num_threads = 1;
  };
  explicit Team(Options options);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return size_; }

  /// Calls body(member, size()) once per member, concurrently, and returns when all have returned.
  /// `body` must not throw.
  template <typename Body>
  void Run(Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    RunErased(
        [](void* context, int member, int members) {
          (*static_cast<Plain*>(context))(member, members);
        },
        const_cast<void*>(static_cast<const void*>(std::addressof(body))));
  }

  /// Inside Run: returns when every member has come here. All members must call it equally often.
  void Barrier();

  /// Inside Run: the next of 0, 1, 2, ... since the last Barrier (or the start of Run); each number
  /// goes to one member. Members that take units of work by it are done at about the same time,
  /// whatever slows one of them down. Between two barriers it may count for one list of work only.
  int Claim() { return next_claim_.fetch_add(1, std::memory_order_relaxed); }

 private:
  using Function = void (*)(void* context, int member, int members);
  void RunErased(Function function, void* context);
  void Work(int member);

  const int size_;
  std::vector<std::thread> threads_;
  Function function_ = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> epoch_{0};  // raised by every Run
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> generation_{0};  // raised by every completed barrier
  alignas(64) std::atomic<int> next_claim_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace holmes::kernels
