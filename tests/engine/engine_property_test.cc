// Random requests from several threads: every answer is what the whole-text reference says, every
// sink has one end, all KV comes home.
#include <malloc.h>

#include <random>
#include <thread>

#include "engine/engine_fixture.h"

namespace holmes::engine {
namespace {

class EnginePropertyTest : public EngineTest {
 protected:
  static Request RandomRequest(std::mt19937& random) {
    const auto uniform = [&random](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    Request request{.seed = static_cast<std::uint64_t>(uniform(0, 1 << 20)),
                    .n = uniform(0, 4) == 0 ? uniform(2, 4) : 1,
                    .max_tokens = uniform(1, 40)};
    for (int i = uniform(1, 40); i > 0; --i)
      request.prompt.push_back(uniform(0, 7) == 0 ? uniform(0, 18) : 1);
    static const std::vector<std::string> kStops = {"ab",
                                                    "abc",
                                                    "bca",
                                                    "DE",
                                                    "EF",
                                                    "\n",
                                                    " ",
                                                    "é",
                                                    "😀",
                                                    "你",
                                                    "\xEF\xBF\xBD",
                                                    "aa",
                                                    "c a",
                                                    "x\xEF\xBF\xBD"};
    for (int i = uniform(0, 3); i > 0; --i)
      request.stop.push_back(
          kStops[static_cast<std::size_t>(uniform(0, static_cast<int>(kStops.size()) - 1))]);
    request.ignore_eos = uniform(0, 2) == 0;
    request.skip_special_tokens = uniform(0, 1) == 0;
    request.min_tokens = uniform(0, 5);
    request.priority = uniform(-1, 1);
    request.sampling.logprobs = uniform(0, 3) == 0;
    if (uniform(0, 5) == 0) request.stop_token_ids = {uniform(0, 18)};
    if (uniform(0, 1) == 0) request.cache_salt = "other";
    return request;
  }

  void RunMany(int threads, int per_thread) {
    std::vector<std::thread> clients;
    for (int t = 0; t < threads; ++t) {
      clients.emplace_back([this, t, per_thread] {
        std::mt19937 random(static_cast<std::uint32_t>(1000 + t));
        std::vector<Running> open;
        for (int i = 0; i < per_thread; ++i) {
          open.push_back(Submit(RandomRequest(random)));
          const Running& newest = open.back();
          if (random() % 8 == 0) {
            if (random() % 2 == 0) newest.events->AwaitTokens(random() % 4);
            engine_->Cancel(newest.id);
            newest.events->Await();
            for (const SampleResult& sample : newest.events->samples())
              EXPECT_TRUE(sample.finish.has_value());
            open.pop_back();
          }
          if (open.size() < 6) continue;
          for (const Running& running : open) ExpectAnswer(running);
          open.clear();
        }
        for (const Running& running : open) ExpectAnswer(running);
      });
    }
    for (std::thread& client : clients) client.join();
  }
};

TEST_F(EnginePropertyTest, AThousandRandomRequests) {
  options_.output_workers = 2;
  Start();
  RunMany(4, 250);
  EXPECT_EQ(engine_->Stats().requests_submitted, 1000U);
  ExpectBaseline();
}

/// Prompts that end inside a character: what comes first is the new text only, whole.
TEST_F(EnginePropertyTest, PromptsThatEndInsideACharacter) {
  Start();
  std::mt19937 random(7);
  int num_completed = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    Request request = Ask(i, 5, 8);
    request.skip_special_tokens = i % 2 == 0;
    static const std::vector<std::vector<TokenId>> kEnds = {
        {11}, {13}, {16}, {13, 15}, {13, 11}, {16, kEndToken}, {kEndToken, 13}, {0}};
    for (const TokenId id : kEnds[random() % kEnds.size()]) request.prompt.push_back(id);
    const Running running = Submit(request);
    ExpectAnswer(running);
    const std::string& text = running.events->samples()[0].text;
    num_completed += text.starts_with("é") && running.events->samples()[0].ids[0] == 12 ? 1 : 0;
  }
  EXPECT_GT(num_completed, 0);
  ExpectBaseline();
}

TEST_F(EnginePropertyTest, UnderPressureOfKvBlocks) {
  info_.kv_groups = {{.num_blocks = 26, .block_tokens = 4}};
  Start();
  RunMany(4, 80);
  EXPECT_GT(engine_->Stats().preemptions, 0U);
  ExpectBaseline();
}

/// What is in use after 50,000 requests with the same stop strings is what was after 10,000.
TEST_F(EnginePropertyTest, MemoryStaysFlatOverFiftyThousandRequests) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's allocator does not tell what is in use";
#endif
  Start();
  const auto run = [this](std::uint64_t first, std::uint64_t last) {
    std::vector<Running> open;
    for (std::uint64_t i = first; i < last; ++i) {
      Request request = Ask(i, 3, 3);
      request.stop = {"ab", "\n", "DE", "你"};
      open.push_back(Submit(std::move(request)));
      if (open.size() < 64) continue;
      for (const Running& running : open) running.events->Await();
      open.clear();
    }
    for (const Running& running : open) running.events->Await();
  };
  run(0, 10'000);
  const std::size_t before = ::mallinfo2().uordblks;
  ASSERT_GT(before, 0U);
  run(10'000, 50'000);
  EXPECT_LT(::mallinfo2().uordblks, before + (256 << 10));
  ExpectBaseline();
}

}  // namespace
}  // namespace holmes::engine
