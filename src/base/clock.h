/// Time as a parameter: what decides by time takes a Clock, so that tests and the simulator move it
/// by hand.
#pragma once

#include <atomic>
#include <chrono>

namespace holmes::base {

/// Monotonic time. Thread-safe.
class Clock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;

  /// The process's steady clock.
  static const Clock& Real();
};

/// A clock that stands still until it is moved.
class FakeClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(Duration(ticks_.load())); }
  void Advance(Duration by) { ticks_.fetch_add(by.count()); }

 private:
  std::atomic<Duration::rep> ticks_{0};
};

}  // namespace holmes::base
