/// An engine over a back end that checks what it is given and draws tokens from the history alone,
/// and a sink that checks the order of events.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "engine/engine_core.h"
#include "sched/fake_executor.h"
#include "text/utf8.h"

namespace holmes::engine {

/// Pieces that overlap, cut characters and stop strings anywhere; the last one is special.
inline const std::vector<std::string>& Pieces() {
  static const std::vector<std::string> pieces = {
      "a", "b",    "c",    "ab",       "bc",       "ca",   "DE",       "DEF",  " ", "\n",
      "é", "\xC3", "\xA9", "\xF0\x9F", "\x98\x80", "\x80", "\xE4\xBD", "\xA0", "x", "<end>"};
  return pieces;
}
inline constexpr TokenId kEndToken = 19;

class PieceTokenizer final : public text::Tokenizer {
 public:
  PieceTokenizer() : text::Tokenizer(text::VocabSpec{.tokens = Pieces()}) {}
  std::vector<TokenId> Encode(std::string_view, const text::EncodeOptions&) const override {
    return {};
  }
  std::string_view TokenBytes(TokenId id) const override {
    return id >= 0 && id < vocab_size()
               ? std::string_view(spec_.tokens[static_cast<std::size_t>(id)])
               : "";
  }
  bool IsSpecial(TokenId id) const override { return id == kEndToken; }
};

/// Holds steps back until the test lets them go. Thread-safe.
class Gate {
 public:
  void Close() {
    base::MutexLock lock(mu_);
    permits_ = 0;
  }
  /// Lets `steps` more steps through.
  void Permit(int steps) {
    base::MutexLock lock(mu_);
    permits_ += steps;
    changed_.NotifyAll();
  }
  void Open() {
    base::MutexLock lock(mu_);
    permits_ = 1 << 30;
    changed_.NotifyAll();
  }
  /// Until step `count` (from 1) is at the gate.
  void AwaitStep(int count) {
    base::MutexLock lock(mu_);
    while (arrived_ < count) changed_.Wait(mu_);
  }
  int arrived() {
    base::MutexLock lock(mu_);
    return arrived_;
  }
  void Pass() {
    base::MutexLock lock(mu_);
    ++arrived_;
    changed_.NotifyAll();
    while (permits_ == 0) changed_.Wait(mu_);
    --permits_;
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  int permits_ HOLMES_GUARDED_BY(mu_) = 1 << 30;
  int arrived_ HOLMES_GUARDED_BY(mu_) = 0;
};

/// Faults that a test orders. Set before the engine starts, or while the gate is closed.
struct Faults {
  std::uint64_t device_fails_at_step = 0;  // 0 = never
  std::uint64_t row_fails_with_seed = ~0ULL;
};

class FakeBackend final : public exec::Backend {
 public:
  FakeBackend(exec::BackendInfo info, std::shared_ptr<Gate> gate, std::shared_ptr<Faults> faults)
      : info_(std::move(info)),
        gate_(std::move(gate)),
        faults_(std::move(faults)),
        executor_(Groups(info_), info_.vocab_size) {
    executor_.StopCounting();
  }
  const exec::BackendInfo& info() const override { return info_; }

  StatusOr<sched::StepResult> Execute(const sched::StepPlan& plan) override {
    gate_->Pass();
    EXPECT_LE(plan.num_tokens, info_.max_tokens_per_step);
    EXPECT_LE(static_cast<int>(plan.rows.size()), info_.max_rows_per_step);
    if (plan.step == faults_->device_fails_at_step)
      return base::InternalError("sticky device fault");
    sched::StepResult result = executor_.Execute(plan);
    for (std::size_t i = 0; i < result.rows.size(); ++i) {
      const sched::PlanRow& row = plan.rows[i];
      if (!row.sample) continue;
      if (row.sampling->seed == faults_->row_fails_with_seed &&
          row.history.size() > static_cast<std::size_t>(row.prompt_tokens) + 2) {
        result.rows[i].error = "NaN logits";
        result.rows[i].tokens.clear();
      }
      for (sched::SampledToken& token : result.rows[i].tokens) {
        token.logprob = -1.0F;
        for (int k = 0; k < row.sampling->top_logprobs; ++k)
          token.top_logprobs.push_back({.id = k, .logprob = -1.0F - static_cast<float>(k)});
      }
    }
    return result;
  }

 private:
  static std::vector<kvcache::GroupOptions> Groups(const exec::BackendInfo& info) {
    std::vector<kvcache::GroupOptions> groups;
    for (const exec::KvGroupInfo& group : info.kv_groups)
      groups.push_back({.num_blocks = group.num_blocks, .block_tokens = group.block_tokens});
    return groups;
  }
  exec::BackendInfo info_;
  std::shared_ptr<Gate> gate_;
  std::shared_ptr<Faults> faults_;
  sched::FakeExecutor executor_;
};

/// One sample as its events told it.
struct SampleResult {
  std::vector<TokenId> ids;
  std::string text;
  std::vector<TokenLogprobs> logprobs;
  std::optional<FinishEvent> finish;
};

/// Collects one request's events and checks their order. Thread-safe.
class Collector {
 public:
  explicit Collector(int n) : samples_(static_cast<std::size_t>(n)) {}

  static EventSink Sink(const std::shared_ptr<Collector>& self) {
    // The last copy of the sink reports its end.
    auto alive = std::shared_ptr<void>(nullptr, [self](void*) { self->SinkGone(); });
    return [self, alive](Event&& event) { self->Take(std::move(event)); };
  }
  /// Until the sink is destroyed.
  void Await() {
    base::MutexLock lock(mu_);
    while (!gone_) changed_.Wait(mu_);
  }
  /// Until at least `count` tokens of sample 0 have come.
  void AwaitTokens(std::size_t count) {
    base::MutexLock lock(mu_);
    while (samples_[0].ids.size() < count && !gone_) changed_.Wait(mu_);
  }
  bool gone() {
    base::MutexLock lock(mu_);
    return gone_;
  }
  /// Precondition: Await returned.
  const std::vector<SampleResult>& samples() const { return samples_; }
  const std::optional<Status>& error() const { return error_; }

 private:
  void Take(Event&& event) {
    base::MutexLock lock(mu_);
    EXPECT_FALSE(error_.has_value()) << "an event after the error";
    if (auto* tokens = std::get_if<TokensEvent>(&event)) {
      SampleResult& sample = samples_[static_cast<std::size_t>(tokens->sample_index)];
      EXPECT_FALSE(sample.finish.has_value()) << "tokens after the last event";
      EXPECT_TRUE(text::IsValidUtf8(tokens->text));
      sample.ids.insert(sample.ids.end(), tokens->ids.begin(), tokens->ids.end());
      sample.text += tokens->text;
      sample.logprobs.insert(
          sample.logprobs.end(), tokens->logprobs.begin(), tokens->logprobs.end());
    } else if (auto* finish = std::get_if<FinishEvent>(&event)) {
      SampleResult& sample = samples_[static_cast<std::size_t>(finish->sample_index)];
      EXPECT_FALSE(sample.finish.has_value()) << "two last events";
      EXPECT_TRUE(text::IsValidUtf8(finish->text));
      sample.text += finish->text;
      sample.logprobs.insert(
          sample.logprobs.end(), finish->logprobs.begin(), finish->logprobs.end());
      sample.finish = std::move(*finish);
    } else {
      error_ = std::get<ErrorEvent>(event).status;
    }
    changed_.NotifyAll();
  }
  void SinkGone() {
    base::MutexLock lock(mu_);
    gone_ = true;
    changed_.NotifyAll();
  }

  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<SampleResult> samples_;
  std::optional<Status> error_;
  bool gone_ = false;
};

/// What a request must give, worked out from the whole.
struct Expected {
  std::string text;
  FinishReason reason = FinishReason::kLength;
  std::optional<std::string> matched_stop;
};

/// What `bytes` add to the prompt's text. Where they complete the character that the prompt ends
/// inside of, the U+FFFD at the end of the prompt's text is replaced by that character.
inline std::string TextBehindPrompt(const Request& request, const std::string& bytes) {
  std::string before;
  for (const TokenId id : request.prompt) {
    if (id != kEndToken || !request.skip_special_tokens)
      before += Pieces()[static_cast<std::size_t>(id)];
  }
  const std::string prompt = text::ReplaceInvalidUtf8(before);
  const std::string whole = text::ReplaceInvalidUtf8(before + bytes);
  const std::size_t begin =
      whole.starts_with(prompt) ? prompt.size() : prompt.size() - text::kReplacement.size();
  return whole.substr(begin);
}

inline Expected Reference(const Request& request,
                          int sample,
                          int context_tokens,
                          const std::vector<TokenId>& end_of_generation) {
  std::vector<TokenId> history = request.prompt;
  std::string bytes;
  Expected expected;
  const int room = context_tokens - static_cast<int>(request.prompt.size());
  const int limit = request.max_tokens == 0 ? room : std::min(request.max_tokens, room);
  for (int i = 0; i < limit; ++i) {
    const TokenId next =
        sched::NextToken(history, *request.seed, sample, static_cast<int>(Pieces().size()));
    history.push_back(next);
    const bool ends =
        std::count(request.stop_token_ids.begin(), request.stop_token_ids.end(), next) > 0 ||
        (!request.ignore_eos &&
         std::count(end_of_generation.begin(), end_of_generation.end(), next) > 0);
    if (ends && i >= request.min_tokens) {
      expected.reason = FinishReason::kStop;
      break;
    }
    if (next != kEndToken || !request.skip_special_tokens)
      bytes += Pieces()[static_cast<std::size_t>(next)];
  }
  expected.text = TextBehindPrompt(request, bytes);
  for (std::size_t end = 1; end <= expected.text.size(); ++end) {
    const std::string_view before(expected.text.data(), end);
    for (const std::string& stop : request.stop) {
      if (!stop.empty() && before.ends_with(stop) &&
          (!expected.matched_stop || stop.size() > expected.matched_stop->size())) {
        expected.matched_stop = stop;
      }
    }
    if (!expected.matched_stop) continue;
    expected.text.resize(end - expected.matched_stop->size());
    expected.reason = FinishReason::kStop;
    break;
  }
  return expected;
}

class EngineTest : public testing::Test {
 protected:
  exec::BackendInfo info_{.device = "fake",
                          .vocab_size = static_cast<int>(Pieces().size()),
                          .context_tokens = 120,
                          .max_tokens_per_step = 24,
                          .max_rows_per_step = 8,
                          .kv_groups = {{.num_blocks = 80, .block_tokens = 4}}};
  EngineOptions options_;
  std::vector<TokenId> end_of_generation_ = {kEndToken};
  base::FakeClock clock_;
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::shared_ptr<Faults> faults_ = std::make_shared<Faults>();
  std::unique_ptr<Engine> engine_;

  void Start() {
    engine_.reset();
    auto made = CreateEngine(options_,
                             std::make_unique<FakeBackend>(info_, gate_, faults_),
                             std::make_unique<PieceTokenizer>(),
                             ModelInfo{.name = "fake"},
                             end_of_generation_,
                             clock_);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    engine_ = *std::move(made);
  }
  void TearDown() override {
    gate_->Open();
    engine_.reset();
  }
  struct Running {
    Request request;
    RequestId id;
    std::shared_ptr<Collector> events;
  };
  Running Submit(Request request) {
    auto events = std::make_shared<Collector>(request.n);
    auto submitted = engine_->Submit(request, Collector::Sink(events));
    EXPECT_TRUE(submitted.ok()) << submitted.status().ToString();
    if (!submitted.ok()) return {};
    request.seed = submitted->seed;
    return {.request = std::move(request), .id = submitted->id, .events = std::move(events)};
  }
  StatusCode SubmitCode(Request request) {
    auto submitted = engine_->Submit(
        std::move(request), [](Event&&) { ADD_FAILURE() << "an event of a refused request"; });
    return submitted.status().code();
  }
  static Request Ask(std::uint64_t seed, int prompt_tokens = 6, int max_tokens = 20, int n = 1) {
    Request request{.seed = seed, .n = n, .max_tokens = max_tokens};
    for (int i = 0; i < prompt_tokens; ++i)
      request.prompt.push_back(
          static_cast<TokenId>((seed + static_cast<std::uint64_t>(i) * 3) % 18));
    return request;
  }
  void ExpectAnswer(const Running& running) {
    running.events->Await();
    EXPECT_FALSE(running.events->error().has_value()) << running.events->error()->ToString();
    for (int i = 0; i < running.request.n; ++i) {
      const Expected expected =
          Reference(running.request, i, engine_->model().context_tokens, end_of_generation_);
      const SampleResult& got = running.events->samples()[static_cast<std::size_t>(i)];
      ASSERT_TRUE(got.finish.has_value());
      EXPECT_EQ(got.text, expected.text);
      EXPECT_EQ(got.finish->reason, expected.reason);
      EXPECT_EQ(got.finish->matched_stop, expected.matched_stop);
      EXPECT_EQ(got.finish->usage.completion_tokens, static_cast<int>(got.ids.size()));
      EXPECT_EQ(got.finish->usage.prompt_tokens, static_cast<int>(running.request.prompt.size()));
    }
  }
  void ExpectBaseline() {
    EXPECT_TRUE(engine_->Drain(base::Clock::Real().Now() + std::chrono::minutes(5)));
    const EngineStats stats = engine_->Stats();
    EXPECT_EQ(stats.kv_blocks_used, 0);
    EXPECT_EQ(stats.sequences_running, 0);
    EXPECT_EQ(stats.sequences_waiting, 0);
    EXPECT_EQ(stats.requests_finished + stats.requests_cancelled + stats.requests_failed,
              stats.requests_submitted);
  }
};

}  // namespace holmes::engine
