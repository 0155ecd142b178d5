#include "base/bounded_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/thread_pool.h"

namespace holmes::base {
namespace {

TEST(BoundedQueueTest, RefusesBeyondItsCapacityAndKeepsTheValue) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  EXPECT_TRUE(queue.TryPush(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  EXPECT_FALSE(queue.TryPush(std::move(second)));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(**queue.Pop(), 1);
}

TEST(BoundedQueueTest, ClosedQueueDrainsThenEnds) {
  BoundedQueue<int> queue(4);
  EXPECT_TRUE(queue.Push(1));
  queue.Close();
  EXPECT_FALSE(queue.Push(2));
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

TEST(BoundedQueueTest, EveryItemOfManyProducersArrivesOnce) {
  constexpr int kProducers = 4;
  constexpr int kItems = 2000;
  BoundedQueue<int> queue(8);
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&queue, p] {
      for (int i = 0; i < kItems; ++i) queue.Push(p * kItems + i);
    });
  }
  std::vector<int> seen(kProducers * kItems, 0);
  for (int i = 0; i < kProducers * kItems; ++i) ++seen[static_cast<std::size_t>(*queue.Pop())];
  for (std::thread& thread : producers) thread.join();
  for (const int count : seen) EXPECT_EQ(count, 1);
}

TEST(ThreadPoolTest, RunsWhatItAcceptedBeforeItEnds) {
  std::atomic<int> ran{0};
  int accepted = 0;
  {
    ThreadPool pool({.num_threads = 2, .queue_capacity = 16});
    for (int i = 0; i < 200; ++i) accepted += pool.TrySubmit([&ran] { ++ran; }) ? 1 : 0;
  }
  EXPECT_EQ(ran.load(), accepted);
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace holmes::base
