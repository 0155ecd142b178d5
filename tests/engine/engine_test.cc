#include "engine/engine.h"

#include <cmath>
#include <limits>

#include "engine/engine_fixture.h"

namespace holmes::engine {
namespace {

TEST_F(EngineTest, AnswersARequestWithUsageAndTimings) {
  Start();
  const Running one = Submit(Ask(1));
  ExpectAnswer(one);
  EXPECT_EQ(engine_->Stats().requests_finished, 1U);
  EXPECT_EQ(engine_->model().context_tokens, 120);
  ExpectBaseline();
}

TEST_F(EngineTest, SameAnswerAloneInABatchChunkedAndAmongSamples) {
  Start();
  std::vector<Running> all;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    all.push_back(
        Submit(Ask(seed, 1 + static_cast<int>(seed) * 4, 18, 1 + static_cast<int>(seed % 4))));
  for (const Running& running : all) ExpectAnswer(running);
  ExpectBaseline();

  options_ = {.max_tokens_per_step = 3,
              .max_rows_per_step = 2,
              .max_prefill_tokens_per_step = 1,
              .prefix_reuse = false,
              .output_workers = 3};
  Start();
  all.clear();
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    all.push_back(
        Submit(Ask(seed, 1 + static_cast<int>(seed) * 4, 18, 1 + static_cast<int>(seed % 4))));
  for (const Running& running : all) ExpectAnswer(running);
  ExpectBaseline();
}

TEST_F(EngineTest, DrawsASeedWhereNoneIsGivenAndKeepsZero) {
  Start();
  Request request = Ask(0);
  const Running zero = Submit(request);
  EXPECT_EQ(zero.request.seed, 0U);
  ExpectAnswer(zero);
  request.seed.reset();
  const Running drawn = Submit(request);
  ExpectAnswer(drawn);  // with the seed that Submitted reported
  EXPECT_NE(drawn.request.seed, Submit(request).request.seed);
}

TEST_F(EngineTest, RefusesWhatIsWrongNamingTheField) {
  Start();
  const auto param = [this](Request request) {
    const auto status =
        engine_->Submit(std::move(request), [](Event&&) { ADD_FAILURE(); }).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
    return std::string(status.param());
  };
  Request request = Ask(1);
  request.prompt.clear();
  EXPECT_EQ(param(request), "prompt");
  request = Ask(1);
  request.prompt[2] = info_.vocab_size;
  EXPECT_EQ(param(request), "prompt");
  request.prompt[2] = -1;
  EXPECT_EQ(param(request), "prompt");
  EXPECT_EQ(param(Ask(1, 120)), "prompt");
  EXPECT_EQ(param(Ask(1, 5, 5, 0)), "n");
  EXPECT_EQ(param(Ask(1, 5, 5, 1000000)), "n");
  request = Ask(1);
  request.stop_token_ids = {-5};
  EXPECT_EQ(param(request), "stop_token_ids");
  request = Ask(1);
  request.sampling.logit_bias = {{info_.vocab_size, 1.0F}};
  EXPECT_EQ(param(request), "logit_bias");
  request = Ask(1);
  request.sampling.temperature = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(param(request), "temperature");
  request = Ask(1);
  request.sampling.top_p = 0;
  EXPECT_EQ(param(request), "top_p");
  request = Ask(1);
  request.task = Task::kEmbed;
  EXPECT_EQ(SubmitCode(request), StatusCode::kUnimplemented);
  ExpectAnswer(Submit(Ask(2)));
}

TEST_F(EngineTest, EndIdsOfTheModelAndOfTheRequest) {
  Start();
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Request request = Ask(seed, 5, 60);
    request.ignore_eos = seed % 3 == 0;
    request.skip_special_tokens = seed % 2 == 0;
    if (seed % 5 == 0) request.stop_token_ids = {static_cast<TokenId>(seed % 18)};
    if (seed % 7 == 0) request.min_tokens = 10;
    ExpectAnswer(Submit(request));
  }
  ExpectBaseline();
}

TEST_F(EngineTest, StopStringInsideOneToken) {
  // "DEF" is one token: the text ends before it whatever the tokens are.
  Start();
  int stopped = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Request request = Ask(seed, 5, 60);
    request.stop = {"DE"};
    const Running running = Submit(request);
    ExpectAnswer(running);
    stopped += running.events->samples()[0].finish->matched_stop.has_value() ? 1 : 0;
  }
  EXPECT_GT(stopped, 5);
  ExpectBaseline();
}

TEST_F(EngineTest, FullQueueRefusesAndNothingIsSent) {
  options_.max_queued_requests = 2;
  info_.max_rows_per_step = 1;
  gate_->Close();
  Start();
  const Running running = Submit(Ask(1));
  gate_->AwaitStep(1);
  const Running second = Submit(Ask(2));
  const Running third = Submit(Ask(3));
  EXPECT_EQ(SubmitCode(Ask(4)), StatusCode::kResourceExhausted);
  gate_->Open();
  ExpectAnswer(running);
  ExpectAnswer(second);
  ExpectAnswer(third);
  ExpectAnswer(Submit(Ask(4)));
}

TEST_F(EngineTest, CancelledInEveryState) {
  info_.max_rows_per_step = 1;
  gate_->Close();
  Start();
  const Running prefilling = Submit(Ask(1, 100, 10));  // several chunks
  gate_->AwaitStep(1);
  const Running queued = Submit(Ask(2, 6, 10, 3));
  engine_->Cancel(queued.id);
  queued.events->Await();  // at once, although a step hangs at the gate
  for (const SampleResult& sample : queued.events->samples())
    EXPECT_EQ(sample.finish->reason, FinishReason::kCancelled);
  engine_->Cancel(prefilling.id);
  prefilling.events->Await();
  EXPECT_TRUE(prefilling.events->samples()[0].ids.empty());
  gate_->Permit(1);

  const Running decoding = Submit(Ask(3, 4, 100));
  gate_->AwaitStep(2);
  gate_->Permit(2);
  decoding.events->AwaitTokens(2);
  gate_->AwaitStep(4);
  engine_->Cancel(decoding.id);
  engine_->Cancel(decoding.id);
  decoding.events->Await();
  EXPECT_EQ(decoding.events->samples()[0].finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(decoding.events->samples()[0].ids.size(), 2U);
  gate_->Open();
  ExpectAnswer(Submit(Ask(4)));
  engine_->Cancel(decoding.id);  // long over
  engine_->Cancel(RequestId{12345});
  EXPECT_EQ(engine_->Stats().requests_cancelled, 3U);
  ExpectBaseline();
}

TEST_F(EngineTest, CancelDuringTheStepThatFinishesGivesOneLastEvent) {
  gate_->Close();
  Start();
  const Running one = Submit(Ask(1, 6, 1, 1));
  gate_->AwaitStep(1);
  engine_->Cancel(one.id);
  gate_->Open();
  one.events->Await();
  EXPECT_TRUE(one.events->samples()[0].finish.has_value());
  ExpectBaseline();
}

TEST_F(EngineTest, DeadlineEndsARequestThatWaitsOrRuns) {
  info_.max_rows_per_step = 1;
  gate_->Close();
  Start();
  Request request = Ask(1, 4, 100);
  request.deadline = clock_.Now() + std::chrono::seconds(5);
  const Running running = Submit(request);
  gate_->AwaitStep(1);
  const Running waiting = Submit(request);
  const Running other = Submit(Ask(9));
  clock_.Advance(std::chrono::seconds(6));
  gate_->Open();
  for (const Running* late : {&running, &waiting}) {
    late->events->Await();
    ASSERT_TRUE(late->events->error().has_value());
    EXPECT_EQ(late->events->error()->code(), StatusCode::kDeadlineExceeded);
  }
  ExpectAnswer(other);
  ExpectBaseline();
}

TEST_F(EngineTest, TimingsFollowTheClock) {
  info_.max_rows_per_step = 1;
  gate_->Close();
  Start();
  const Running first = Submit(Ask(1, 4, 1));
  gate_->AwaitStep(1);
  const Running second = Submit(Ask(2, 4, 1));
  clock_.Advance(std::chrono::seconds(3));
  gate_->Open();
  ExpectAnswer(second);
  ExpectAnswer(first);
  const Timings timings = second.events->samples()[0].finish->timings;
  EXPECT_EQ(timings.queued, std::chrono::seconds(3));
  EXPECT_EQ(timings.time_to_first, std::chrono::seconds(3));
  EXPECT_EQ(timings.total, std::chrono::seconds(3));
  EXPECT_EQ(first.events->samples()[0].finish->timings.queued, std::chrono::seconds(0));
}

TEST_F(EngineTest, ARowThatFailsEndsItsRequestOnly) {
  faults_->row_fails_with_seed = 77;
  Start();
  const Running bad = Submit(Ask(77, 6, 30, 2));
  std::vector<Running> others;
  for (std::uint64_t seed = 0; seed < 6; ++seed) others.push_back(Submit(Ask(seed)));
  bad.events->Await();
  ASSERT_TRUE(bad.events->error().has_value());
  EXPECT_EQ(bad.events->error()->code(), StatusCode::kInternal);
  for (const Running& other : others) ExpectAnswer(other);
  ExpectBaseline();
}

TEST_F(EngineTest, DeviceFaultEndsAllAndRefusesMore) {
  faults_->device_fails_at_step = 3;
  gate_->Close();
  Start();
  std::vector<Running> all;
  for (std::uint64_t seed = 0; seed < 12; ++seed) all.push_back(Submit(Ask(seed, 10, 50)));
  gate_->Open();
  for (const Running& running : all) {
    running.events->Await();
    ASSERT_TRUE(running.events->error().has_value());
    EXPECT_EQ(running.events->error()->code(), StatusCode::kUnavailable);
  }
  EXPECT_EQ(SubmitCode(Ask(1)), StatusCode::kUnavailable);
  ExpectBaseline();
}

TEST_F(EngineTest, DrainLetsAnswersFinishAndRefusesNewOnes) {
  gate_->Close();
  Start();
  const Running running = Submit(Ask(1));
  gate_->AwaitStep(1);
  // The deadline has passed already: what runs is cancelled.
  std::thread drain([this] {
    EXPECT_FALSE(engine_->Drain(base::Clock::Real().Now() - std::chrono::seconds(1)));
  });
  running.events->Await();
  EXPECT_EQ(running.events->samples()[0].finish->reason, FinishReason::kCancelled);
  gate_->Open();
  drain.join();
  EXPECT_EQ(SubmitCode(Ask(2)), StatusCode::kUnavailable);

  Start();
  const Running whole = Submit(Ask(3));
  EXPECT_TRUE(engine_->Drain(base::Clock::Real().Now() + std::chrono::minutes(5)));
  ExpectAnswer(whole);
}

TEST_F(EngineTest, DestructionEndsEverySink) {
  gate_->Close();
  Start();
  std::vector<Running> all;
  for (std::uint64_t seed = 0; seed < 12; ++seed) all.push_back(Submit(Ask(seed, 6, 50, 2)));
  gate_->AwaitStep(1);
  gate_->Open();
  engine_.reset();
  for (const Running& running : all) {
    EXPECT_TRUE(running.events->gone());
    for (const SampleResult& sample : running.events->samples())
      EXPECT_TRUE(sample.finish.has_value());
  }
}

TEST_F(EngineTest, CachedPrefixIsReportedAndChangesNothing) {
  Start();
  for (const int length : {3, 4, 5, 8, 9}) {
    const Request request = Ask(5, length);
    const Running cold = Submit(request);
    ExpectAnswer(cold);
    const Running warm = Submit(request);
    ExpectAnswer(warm);
    EXPECT_EQ(warm.events->samples()[0].finish->usage.cached_prompt_tokens, (length - 1) / 4 * 4);
    EXPECT_EQ(warm.events->samples()[0].ids, cold.events->samples()[0].ids);
    Request salted = request;
    salted.cache_salt = "tenant " + std::to_string(length);
    const Running other = Submit(salted);
    ExpectAnswer(other);
    EXPECT_EQ(other.events->samples()[0].finish->usage.cached_prompt_tokens, 0);
  }
}

TEST_F(EngineTest, LogprobsComeWithTheirText) {
  Start();
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Request request = Ask(seed, 4, 40);
    request.sampling.logprobs = true;
    request.sampling.top_logprobs = 2;
    if (seed % 2 == 0) request.stop = {"ab", "é"};
    const Running running = Submit(request);
    ExpectAnswer(running);
    const SampleResult& sample = running.events->samples()[0];
    std::string bytes;
    std::string before_last;
    for (const TokenLogprobs& entry : sample.logprobs) {
      if (!entry.token.bytes.empty()) before_last = bytes;
      bytes += entry.token.bytes;
      EXPECT_EQ(entry.top.size(), 2U);
    }
    const std::string text = TextBehindPrompt(request, bytes);
    if (!sample.finish->matched_stop) {
      EXPECT_EQ(text, sample.text) << "seed " << seed;
      continue;
    }
    // Every token whose text was sent, also in part, is there with its own bytes; those that were
    // cut off whole are not.
    EXPECT_TRUE(text.starts_with(sample.text)) << "seed " << seed;
    if (text::IsValidUtf8(before_last) && !bytes.empty()) {
      EXPECT_LT(before_last.size(), sample.text.size()) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace holmes::engine
