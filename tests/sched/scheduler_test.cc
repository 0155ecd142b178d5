#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sched/fake_executor.h"

namespace holmes::sched {
namespace {

constexpr int kVocab = 50;

std::vector<TokenId> Prompt(int length, int salt = 0) {
  std::vector<TokenId> ids;
  for (int i = 0; i < length; ++i) ids.push_back((i * 7 + salt) % kVocab);
  return ids;
}

SequenceGroup Spec(std::uint64_t request, int prompt_tokens, int max_tokens, int n = 1) {
  SequenceGroup spec{.request = RequestId{request},
                     .prompt = Prompt(prompt_tokens, static_cast<int>(request)),
                     .n = n,
                     .max_tokens = max_tokens};
  spec.sampling.seed = request;
  return spec;
}

class SchedulerTest : public testing::Test {
 protected:
  void Start(SchedulerOptions options) {
    if (options.kv_groups.empty()) options.kv_groups = {{.num_blocks = 64, .block_tokens = 4}};
    if (options.context_tokens == 0) options.context_tokens = 200;
    if (options.max_tokens_per_step == 0) options.max_tokens_per_step = 16;
    if (options.max_rows_per_step == 0) options.max_rows_per_step = 8;
    executor_.emplace(options.kv_groups, kVocab);
    auto made = Scheduler::Create(options, clock_);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    scheduler_ = *std::move(made);
  }
  /// One step; what it accepted. Empty plans are refused.
  std::vector<Accepted> Step() {
    last_ = scheduler_->Plan();
    EXPECT_FALSE(last_.plan.empty());
    std::vector<Accepted> accepted = scheduler_->Commit(executor_->Execute(last_.plan));
    for (const Accepted& a : accepted) {
      for (const SampledToken& token : a.tokens)
        output_[{a.request, a.sample_index}].push_back(token.id);
      if (a.ended) ended_[{a.request, a.sample_index}] = *a.ended;
    }
    const Status status = scheduler_->CheckIntegrity();
    EXPECT_TRUE(status.ok()) << status.ToString();
    return accepted;
  }
  void Run() {
    for (int step = 0; scheduler_->has_work(); ++step) {
      ASSERT_LT(step, 10000);
      Step();
    }
    EXPECT_EQ(scheduler_->Stats().kv_held, 0);
  }
  std::vector<TokenId> Expected(std::uint64_t request,
                                int prompt_tokens,
                                int count,
                                int sample = 0) const {
    std::vector<TokenId> history = Prompt(prompt_tokens, static_cast<int>(request));
    for (int i = 0; i < count; ++i) history.push_back(NextToken(history, request, sample, kVocab));
    return {history.begin() + prompt_tokens, history.end()};
  }

  base::FakeClock clock_;
  std::optional<FakeExecutor> executor_;
  std::unique_ptr<Scheduler> scheduler_;
  Planned last_;
  std::map<std::pair<RequestId, int>, std::vector<TokenId>> output_;
  std::map<std::pair<RequestId, int>, EndReason> ended_;
};

TEST_F(SchedulerTest, RefusesOptionsThatCannotWork) {
  EXPECT_EQ(Scheduler::Create({.kv_groups = {{.num_blocks = 1}}, .context_tokens = 0}, clock_)
                .status()
                .code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Scheduler::Create(
                {.context_tokens = 1, .max_tokens_per_step = 1, .max_rows_per_step = 1}, clock_)
                .status()
                .code(),
            StatusCode::kInvalidArgument);
}

TEST_F(SchedulerTest, RefusesWhatCanNeverFitWithBothNumbers) {
  Start({.kv_groups = {{.num_blocks = 5, .block_tokens = 4}}});
  const Status status = scheduler_->Add(Spec(1, 20, 1)).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("20 tokens"), std::string::npos);
  EXPECT_EQ(status.param(), "prompt");
  EXPECT_EQ(scheduler_->Add(Spec(1, 0, 1)).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(scheduler_->Add(Spec(1, 19, 1)).ok());
  EXPECT_EQ(scheduler_->Add(Spec(1, 3, 1)).status().code(), StatusCode::kAlreadyExists);
  Run();
}

TEST_F(SchedulerTest, FullQueueRefuses) {
  Start({.max_waiting_sequences = 3});
  EXPECT_TRUE(scheduler_->Add(Spec(1, 4, 2, 2)).ok());
  EXPECT_EQ(scheduler_->Add(Spec(2, 4, 2, 2)).status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(scheduler_->Add(Spec(3, 4, 2, 1)).ok());
  Run();
}

TEST_F(SchedulerTest, ChunksAPromptAndSamplesAfterItsEnd) {
  Start({.max_tokens_per_step = 8});
  ASSERT_TRUE(scheduler_->Add(Spec(1, 19, 3)).ok());
  for (const int expected : {8, 8, 3, 1, 1}) {
    Step();
    EXPECT_EQ(last_.plan.num_tokens, expected);
  }
  EXPECT_FALSE(scheduler_->has_work());
  EXPECT_EQ((output_[{RequestId{1}, 0}]), Expected(1, 19, 3));
  EXPECT_EQ((ended_[{RequestId{1}, 0}]), EndReason::kMaxTokens);
  EXPECT_TRUE(scheduler_->Plan().plan.empty());
}

TEST_F(SchedulerTest, DecodesComeFirstAndPrefillTakesItsShare) {
  Start({.max_tokens_per_step = 16, .max_prefill_tokens_per_step = 5});
  ASSERT_TRUE(scheduler_->Add(Spec(1, 16, 30)).ok());
  Step();
  EXPECT_EQ(last_.plan.num_tokens, 16);  // nobody streams: the whole budget
  ASSERT_TRUE(scheduler_->Add(Spec(2, 12, 2)).ok());
  for (const int expected : {6, 6, 3}) {
    Step();
    EXPECT_EQ(last_.plan.rows[0].sequence, SequenceId{1});
    EXPECT_EQ(last_.plan.num_tokens, expected);
  }
  Run();
  EXPECT_EQ((output_[{RequestId{1}, 0}]), Expected(1, 16, 30));
  EXPECT_EQ((output_[{RequestId{2}, 0}]), Expected(2, 12, 2));
}

TEST_F(SchedulerTest, SmallerPriorityThenEarlierArrivalGoesFirst) {
  Start({.max_rows_per_step = 1});
  for (const auto& [request, priority] : {std::pair{1, 5}, {2, 0}, {3, 0}, {4, -1}}) {
    SequenceGroup spec = Spec(static_cast<std::uint64_t>(request), 3, 1);
    spec.priority = priority;
    ASSERT_TRUE(scheduler_->Add(std::move(spec)).ok());
  }
  std::vector<std::uint64_t> order;
  while (scheduler_->has_work()) order.push_back(Step()[0].request.value);
  EXPECT_EQ(order, (std::vector<std::uint64_t>{4, 2, 3, 1}));
}

TEST_F(SchedulerTest, SamplesShareThePromptAndComputeOnlyItsLastToken) {
  Start({.max_tokens_per_step = 8});
  ASSERT_TRUE(scheduler_->Add(Spec(1, 10, 6, 3)).ok());
  ASSERT_TRUE(scheduler_->Add(Spec(2, 8, 6, 2)).ok());  // ends at a block's border
  Run();
  for (int i = 0; i < 3; ++i) EXPECT_EQ((output_[{RequestId{1}, i}]), Expected(1, 10, 6, i));
  for (int i = 0; i < 2; ++i) EXPECT_EQ((output_[{RequestId{2}, i}]), Expected(2, 8, 6, i));
  for (const auto& [id, counts] : executor_->computed()) {
    const bool is_first = id == SequenceId{1} || id == SequenceId{4};
    const int prompt_tokens = id.value <= 3 ? 10 : 8;
    for (int p = 0; p < static_cast<int>(counts.size()); ++p) {
      EXPECT_EQ(counts[static_cast<std::size_t>(p)], is_first || p >= prompt_tokens - 1 ? 1 : 0)
          << id.value << " " << p;
    }
  }
}

TEST_F(SchedulerTest, AnotherSampleTakesOverThePromptWhenTheFirstEnds) {
  Start({.max_tokens_per_step = 4});
  const auto ids = scheduler_->Add(Spec(1, 10, 2, 3));
  ASSERT_TRUE(ids.ok());
  Step();
  scheduler_->End((*ids)[0]);
  Run();
  EXPECT_EQ((output_.count({RequestId{1}, 0})), 0U);
  EXPECT_EQ((output_[{RequestId{1}, 1}]), Expected(1, 10, 2, 1));
  EXPECT_EQ((output_[{RequestId{1}, 2}]), Expected(1, 10, 2, 2));
}

TEST_F(SchedulerTest, PreemptedSequencesGoOnWithTheSameTokens) {
  Start({.kv_groups = {{.num_blocks = 6, .block_tokens = 4}}});
  for (std::uint64_t r = 1; r <= 3; ++r) ASSERT_TRUE(scheduler_->Add(Spec(r, 5, 15)).ok());
  Run();
  EXPECT_GT(scheduler_->Stats().preemptions, 0U);
  for (std::uint64_t r = 1; r <= 3; ++r)
    EXPECT_EQ((output_[{RequestId{r}, 0}]), Expected(r, 5, 15));
}

TEST_F(SchedulerTest, EndIdsEndAndCountOnlyFromMinTokensOn) {
  Start({});
  const std::vector<TokenId> whole = Expected(1, 6, 30);
  SequenceGroup spec = Spec(1, 6, 30);
  spec.end_ids = {whole[4]};
  spec.min_tokens = 5;  // the executor draws it all the same: it is then a token like others
  const auto first_after = std::find(whole.begin() + 5, whole.end(), whole[4]);
  ASSERT_TRUE(scheduler_->Add(std::move(spec)).ok());
  Step();
  const auto& bias = last_.plan.rows[0].sampling;
  ASSERT_FALSE(scheduler_->Stats().running == 0);
  static_cast<void>(bias);
  Planned next = scheduler_->Plan();
  ASSERT_EQ(next.plan.rows[0].sampling->logit_bias.size(), 1U);
  EXPECT_EQ(next.plan.rows[0].sampling->logit_bias[0].first, whole[4]);
  EXPECT_TRUE(std::isinf(next.plan.rows[0].sampling->logit_bias[0].second));
  for (const Accepted& a : scheduler_->Commit(executor_->Execute(next.plan))) {
    for (const SampledToken& token : a.tokens)
      output_[{a.request, a.sample_index}].push_back(token.id);
  }
  for (int i = 0; i < 4; ++i) Step();
  if (scheduler_->has_work()) {
    EXPECT_TRUE(last_.plan.rows[0].sampling->logit_bias.empty());
  }
  Run();
  const auto& got = output_[{RequestId{1}, 0}];
  EXPECT_EQ(
      got.size(),
      first_after == whole.end() ? 30U : static_cast<std::size_t>(first_after - whole.begin() + 1));
}

TEST_F(SchedulerTest, DeadlineEndsARequestAtTheNextPlan) {
  Start({.max_rows_per_step = 1});
  SequenceGroup late = Spec(2, 5, 50);
  late.deadline = clock_.Now() + std::chrono::seconds(1);
  ASSERT_TRUE(scheduler_->Add(Spec(1, 5, 3)).ok());
  ASSERT_TRUE(scheduler_->Add(std::move(late)).ok());
  Step();
  clock_.Advance(std::chrono::seconds(2));
  Step();
  ASSERT_EQ(last_.expired.size(), 1U);
  EXPECT_EQ(last_.expired[0].request, RequestId{2});
  Run();
  EXPECT_EQ((output_.count({RequestId{2}, 0})), 0U);
}

TEST_F(SchedulerTest, CancelDuringAStepKeepsWhatThePlanBorrowsAndDropsItsTokens) {
  Start({});
  ASSERT_TRUE(scheduler_->Add(Spec(1, 5, 9, 2)).ok());
  ASSERT_TRUE(scheduler_->Add(Spec(2, 5, 9)).ok());
  Step();
  Planned planned = scheduler_->Plan();
  scheduler_->Cancel(RequestId{1});
  scheduler_->Cancel(RequestId{1});
  scheduler_->Cancel(RequestId{77});
  for (const Accepted& a : scheduler_->Commit(executor_->Execute(planned.plan)))
    EXPECT_EQ(a.request, RequestId{2});
  EXPECT_EQ(scheduler_->Stats().running + scheduler_->Stats().waiting, 1);
  scheduler_->Cancel(RequestId{2});
  EXPECT_EQ(scheduler_->Stats().kv_held, 0);
}

TEST_F(SchedulerTest, ARowThatFailsEndsItsRequestOnly) {
  Start({});
  ASSERT_TRUE(scheduler_->Add(Spec(1, 5, 9, 3)).ok());
  ASSERT_TRUE(scheduler_->Add(Spec(2, 5, 9)).ok());
  Step();
  Planned planned = scheduler_->Plan();
  StepResult result = executor_->Execute(planned.plan);
  result.rows[0].tokens.clear();
  result.rows[0].error = "NaN logits";
  int failed = 0;
  for (const Accepted& a : scheduler_->Commit(std::move(result)))
    failed += a.ended == EndReason::kError ? 1 : 0;
  EXPECT_EQ(failed, 1);
  EXPECT_TRUE(scheduler_->CheckIntegrity().ok());
  EXPECT_EQ(scheduler_->Stats().running + scheduler_->Stats().waiting, 1);
  scheduler_->Cancel(RequestId{2});
}

TEST_F(SchedulerTest, AbandonedStepsAreComputedAnew) {
  Start({.max_tokens_per_step = 4});
  ASSERT_TRUE(scheduler_->Add(Spec(1, 6, 8, 3)).ok());
  for (int i = 0; scheduler_->has_work(); ++i) {
    if (i % 3 == 2) {
      ASSERT_FALSE(scheduler_->Plan().plan.empty());
      scheduler_->Abandon();
      EXPECT_TRUE(scheduler_->CheckIntegrity().ok());
      // Let each round get further than the prompt's length in chunks.
      for (int k = 0; k < 8 && scheduler_->has_work(); ++k) Step();
    } else {
      Step();
    }
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ((output_[{RequestId{1}, i}]), Expected(1, 6, 8, i));
}

TEST_F(SchedulerTest, EqualPromptsAreComputedOnceWithPrefixReuse) {
  Start({.prefix_reuse = true});
  SequenceGroup spec = Spec(1, 13, 2);
  ASSERT_TRUE(scheduler_->Add(spec).ok());
  Run();
  spec.request = RequestId{2};
  ASSERT_TRUE(scheduler_->Add(spec).ok());
  const auto accepted = Step();
  EXPECT_EQ(last_.plan.rows[0].first_position, 12);
  EXPECT_EQ(accepted[0].cached_prompt_tokens, 12);
  Run();
  EXPECT_EQ((output_[{RequestId{1}, 0}]), (output_[{RequestId{2}, 0}]));
  spec.request = RequestId{3};
  spec.name_space = "another tenant";
  ASSERT_TRUE(scheduler_->Add(spec).ok());
  EXPECT_EQ(Step()[0].cached_prompt_tokens, 0);
  Run();
}

TEST_F(SchedulerTest, ContextEndEndsAnAnswerWithoutALimit) {
  Start({.context_tokens = 12});
  ASSERT_TRUE(scheduler_->Add(Spec(1, 5, 0)).ok());
  Run();
  EXPECT_EQ((output_[{RequestId{1}, 0}].size()), 7U);
  EXPECT_EQ((ended_[{RequestId{1}, 0}]), EndReason::kMaxTokens);
}

}  // namespace
}  // namespace holmes::sched
