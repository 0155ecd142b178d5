// Random histories with a fake executor that checks every slot it reads: whatever is added,
// cancelled and preempted, every sequence gets the tokens that it would get alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "sched/fake_executor.h"
#include "sched/scheduler.h"

namespace holmes::sched {
namespace {

constexpr int kVocab = 40;

class History {
 public:
  explicit History(std::uint32_t seed) : random_(seed) {
    const int num_groups = Uniform(1, 2);
    const bool reuse = Uniform(0, 1) == 0;
    const int block_tokens = Uniform(1, 6);
    for (int g = 0; g < num_groups; ++g) {
      options_.kv_groups.push_back(
          {.num_blocks = Uniform(30, 90) / block_tokens + 2,
           .block_tokens = reuse || g == 0 ? block_tokens : Uniform(1, 6)});
    }
    options_.context_tokens = Uniform(20, 60);
    options_.max_tokens_per_step = Uniform(1, 24);
    options_.max_rows_per_step = Uniform(1, 10);
    options_.max_prefill_tokens_per_step = Uniform(0, 1) * Uniform(1, 8);
    options_.max_waiting_sequences = 40;
    options_.prefix_reuse = reuse;
    executor_.emplace(options_.kv_groups, kVocab);
    auto made = Scheduler::Create(options_, clock_);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    scheduler_ = *std::move(made);
  }

  void Step() {
    for (int i = Uniform(0, 2); i > 0; --i) AddOne();
    if (Uniform(0, 9) == 0) CancelOne();
    Planned planned = scheduler_->Plan();
    for (const Expired& expired : planned.expired) live_.erase(expired.request);
    CheckPlan(planned.plan);
    if (planned.plan.empty()) {
      EXPECT_TRUE(live_.empty());
      return;
    }
    if (Uniform(0, 60) == 0) {
      scheduler_->Abandon();
      sampled_.clear();
      return CheckIntegrity();
    }
    StepResult result = executor_->Execute(planned.plan);
    if (Uniform(0, 9) == 0) CancelOne();  // while the step runs
    if (Uniform(0, 50) == 0) {
      RowResult& row =
          result
              .rows[static_cast<std::size_t>(Uniform(0, static_cast<int>(result.rows.size()) - 1))];
      row.error = "fault";
    }
    for (const Accepted& accepted : scheduler_->Commit(std::move(result))) Take(accepted);
    clock_.Advance(std::chrono::milliseconds(1));
    CheckIntegrity();
  }

  /// No more arrivals: everything ends in finitely many steps, and all blocks come home.
  void Finish() {
    for (int steps = 0; scheduler_->has_work(); ++steps) {
      ASSERT_LT(steps, 40000) << "starved";
      Planned planned = scheduler_->Plan();
      for (const Expired& expired : planned.expired) live_.erase(expired.request);
      if (planned.plan.empty()) break;
      for (const Accepted& accepted : scheduler_->Commit(executor_->Execute(planned.plan)))
        Take(accepted);
      CheckIntegrity();
    }
    EXPECT_TRUE(live_.empty());
    EXPECT_EQ(scheduler_->Stats().kv_held, 0);
    EXPECT_EQ(scheduler_->Stats().running + scheduler_->Stats().waiting, 0);
  }
  int finished() const { return finished_; }
  std::uint64_t preemptions() const { return scheduler_->Stats().preemptions; }

 private:
  struct Request {
    SequenceGroup spec;
    std::vector<SequenceId> ids;
    std::vector<std::vector<TokenId>> history;  // by sample
    std::set<int> unfinished;
  };
  int Uniform(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  void AddOne() {
    SequenceGroup spec{.request = RequestId{next_++},
                       .n = Uniform(0, 3) == 0 ? Uniform(2, 5) : 1,
                       .max_tokens = Uniform(0, 20)};
    for (int i = Uniform(1, 24); i > 0; --i)
      spec.prompt.push_back(Uniform(0, 9) == 0 ? 1 : 0);  // long common beginnings
    spec.sampling.seed = static_cast<std::uint64_t>(Uniform(0, 3));
    spec.min_tokens = Uniform(0, 3);
    for (int i = Uniform(0, 3); i > 0; --i) spec.end_ids.push_back(Uniform(0, kVocab - 1));
    spec.priority = Uniform(-1, 1);
    spec.name_space = Uniform(0, 1) == 0 ? "a" : "b";
    if (Uniform(0, 9) == 0)
      spec.deadline = clock_.Now() + std::chrono::milliseconds(Uniform(0, 60));
    auto ids = scheduler_->Add(spec);
    if (!ids.ok()) {
      EXPECT_TRUE(ids.status().code() == StatusCode::kResourceExhausted ||
                  ids.status().code() == StatusCode::kInvalidArgument);
      return;
    }
    Request& request = live_[spec.request];
    request.ids = *ids;
    request.history.assign(ids->size(), spec.prompt);
    for (int i = 0; i < spec.n; ++i) request.unfinished.insert(i);
    request.spec = std::move(spec);
  }

  void CancelOne() {
    if (live_.empty()) return;
    const auto it = std::next(live_.begin(), Uniform(0, static_cast<int>(live_.size()) - 1));
    if (Uniform(0, 1) == 0) {
      const int sample = *it->second.unfinished.begin();
      scheduler_->End(it->second.ids[static_cast<std::size_t>(sample)]);
      it->second.unfinished.erase(sample);
    } else {
      scheduler_->Cancel(it->first);
      it->second.unfinished.clear();
    }
    if (it->second.unfinished.empty()) live_.erase(it);
  }

  void Take(const Accepted& accepted) {
    const auto it = live_.find(accepted.request);
    ASSERT_NE(it, live_.end()) << "tokens for a request that is over";
    Request& request = it->second;
    ASSERT_TRUE(request.unfinished.contains(accepted.sample_index));
    if (accepted.ended == EndReason::kError) {
      live_.erase(it);
      return;
    }
    std::vector<TokenId>& history =
        request.history[static_cast<std::size_t>(accepted.sample_index)];
    const SequenceGroup& spec = request.spec;
    for (const SampledToken& token : accepted.tokens) {
      ASSERT_EQ(token.id, NextToken(history, spec.sampling.seed, accepted.sample_index, kVocab));
      history.push_back(token.id);
    }
    const int length = static_cast<int>(history.size());
    const int output = length - static_cast<int>(spec.prompt.size());
    const bool at_end = output > spec.min_tokens && !accepted.tokens.empty() &&
                        std::ranges::count(spec.end_ids, history.back()) > 0;
    const bool at_limit = length >= scheduler_->max_sequence_tokens() ||
                          (spec.max_tokens > 0 && output >= spec.max_tokens);
    ASSERT_EQ(accepted.ended.has_value(), at_end || (!accepted.tokens.empty() && at_limit));
    if (!accepted.ended) return;
    ASSERT_EQ(*accepted.ended, at_end ? EndReason::kEndToken : EndReason::kMaxTokens);
    ++finished_;
    request.unfinished.erase(accepted.sample_index);
    if (request.unfinished.empty()) live_.erase(it);
  }

  void CheckPlan(const StepPlan& plan) {
    int tokens = 0;
    int decodes = 0;
    int prefill = 0;
    std::set<SequenceId> seen;
    for (const PlanRow& row : plan.rows) {
      EXPECT_GE(row.num_tokens, 1);
      EXPECT_TRUE(seen.insert(row.sequence).second) << "two rows of one sequence";
      tokens += row.num_tokens;
      const bool decodes_on = sampled_.contains(row.sequence) && row.num_tokens == 1;
      if (decodes_on) ++decodes;
      if (row.num_tokens > 1)
        prefill += row.num_tokens;  // a prompt's last single token is a decode to the scheduler
    }
    EXPECT_EQ(tokens, plan.num_tokens);
    EXPECT_LE(tokens, scheduler_->options().max_tokens_per_step);
    EXPECT_LE(static_cast<int>(plan.rows.size()), scheduler_->options().max_rows_per_step);
    if (decodes > 0) {
      EXPECT_LE(prefill, scheduler_->options().max_prefill_tokens_per_step);
    }
    sampled_.clear();
    for (const PlanRow& row : plan.rows) {
      if (row.sample) sampled_.insert(row.sequence);
    }
  }
  void CheckIntegrity() {
    const Status status = scheduler_->CheckIntegrity();
    ASSERT_TRUE(status.ok()) << status.ToString();
  }

  std::mt19937 random_;
  base::FakeClock clock_;
  SchedulerOptions options_;
  std::optional<FakeExecutor> executor_;
  std::unique_ptr<Scheduler> scheduler_;
  std::map<RequestId, Request> live_;
  std::set<SequenceId> sampled_;  // had a token drawn in the last plan
  std::uint64_t next_ = 1;
  int finished_ = 0;
};

TEST(SchedulerPropertyTest, EverySequenceGetsItsOwnTokensInAnyHistory) {
  int finished = 0;
  std::uint64_t preemptions = 0;
  for (std::uint32_t seed = 0; seed < 80; ++seed) {
    History history(seed);
    for (int step = 0; step < 150; ++step) {
      history.Step();
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << " step " << step;
    }
    history.Finish();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
    finished += history.finished();
    preemptions += history.preemptions();
  }
  EXPECT_GT(finished, 2000);
  EXPECT_GT(preemptions, 500U);
}

}  // namespace
}  // namespace holmes::sched
