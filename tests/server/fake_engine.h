/// An engine that says what a test tells it to.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace holmes::server {

/// One token per byte, and the special tokens <|im_start|> (256), <|im_end|> (257) and <s> (258).
class ByteTokenizer final : public text::Tokenizer {
 public:
  static constexpr TokenId kStart = 256;
  static constexpr TokenId kEnd = 257;
  static constexpr TokenId kBos = 258;

  ByteTokenizer() : text::Tokenizer(MakeSpec()) {
    for (int i = 0; i < 256; ++i) bytes_.emplace_back(1, static_cast<char>(i));
    for (const text::AddedToken& token : spec_.added) bytes_.push_back(token.text);
  }

  std::vector<TokenId> Encode(std::string_view utf8,
                              const text::EncodeOptions& options) const override {
    std::vector<TokenId> ids;
    if (options.add_special && !utf8.starts_with("<s>")) ids.push_back(kBos);
    while (!utf8.empty()) {
      TokenId id = static_cast<unsigned char>(utf8.front());
      std::size_t size = 1;
      for (const text::AddedToken& token : spec_.added) {
        if (!options.parse_special || !utf8.starts_with(token.text)) continue;
        id = token.id;
        size = token.text.size();
      }
      ids.push_back(id);
      utf8.remove_prefix(size);
    }
    return ids;
  }
  std::string_view TokenBytes(TokenId id) const override {
    return id >= 0 && id < vocab_size() ? std::string_view(bytes_[static_cast<std::size_t>(id)])
                                        : "";
  }
  bool IsSpecial(TokenId id) const override { return id >= 256; }

 private:
  static text::VocabSpec MakeSpec() {
    text::VocabSpec spec;
    spec.tokens.resize(259);
    spec.added = {{kStart, "<|im_start|>", true}, {kEnd, "<|im_end|>", true}, {kBos, "<s>", true}};
    spec.add_bos = true;
    spec.bos = kBos;
    return spec;
  }
  std::vector<std::string> bytes_;
};

/// Calls `script` for each request on a thread of its own; requests it leaves unfinished stay open
/// until Cancel or the end.
class FakeEngine final : public engine::Engine {
 public:
  struct Running {
    RequestId id;
    engine::Request request;
    engine::EventSink sink;
  };
  /// Runs after Submit has returned.
  using Script = std::function<void(const std::shared_ptr<Running>&)>;

  explicit FakeEngine(Script script) : script_(std::move(script)) {
    info_.name = "fake";
    info_.vocab_size = tokenizer_.vocab_size();
    info_.context_tokens = 100'000;
    info_.bos_text = "<s>";
    info_.eos_text = "<|im_end|>";
  }
  ~FakeEngine() override { Join(); }

  StatusOr<engine::Submitted> Submit(engine::Request request, engine::EventSink sink) override {
    std::unique_lock lock(mu_);
    requests_.push_back(request);
    if (draining_) return base::UnavailableError("draining");
    if (num_accepted_ >= accept_limit_) return base::ResourceExhaustedError("queue full");
    if (static_cast<int>(request.prompt.size()) > info_.context_tokens) {
      return base::InvalidArgumentError("the prompt has more tokens than the context");
    }
    const engine::Submitted submitted{RequestId{++num_accepted_}, request.seed.value_or(4711)};
    auto running =
        std::make_shared<Running>(Running{submitted.id, std::move(request), std::move(sink)});
    open_.push_back(running);
    threads_.emplace_back([this, running] { script_(running); });
    return submitted;
  }
  void Cancel(RequestId id) override {
    std::unique_lock lock(mu_);
    cancelled_.push_back(id);
    changed_.notify_all();
  }
  bool Drain(base::Clock::TimePoint) override {
    std::unique_lock lock(mu_);
    draining_ = true;
    changed_.notify_all();
    return true;
  }
  engine::EngineStats Stats() const override {
    engine::EngineStats stats;
    stats.prompt_tokens = 11;
    stats.generated_tokens = 22;
    stats.sequences_running = 3;
    stats.kv_blocks_total = 8;
    stats.kv_blocks_used = 2;
    return stats;
  }
  const engine::ModelInfo& model() const override { return info_; }
  const text::Tokenizer& tokenizer() const override { return tokenizer_; }

  engine::ModelInfo& mutable_model() { return info_; }
  void set_accept_limit(std::uint64_t limit) { accept_limit_ = limit; }
  /// False when it does not happen in 20 s.
  bool WaitCancelled(std::size_t count) {
    std::unique_lock lock(mu_);
    return changed_.wait_for(
        lock, std::chrono::seconds(20), [&] { return cancelled_.size() >= count; });
  }
  bool WaitDraining() {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return draining_; });
  }
  std::vector<engine::Request> requests() {
    std::unique_lock lock(mu_);
    return requests_;
  }
  std::size_t num_cancelled() {
    std::unique_lock lock(mu_);
    return cancelled_.size();
  }

 private:
  void Join() {
    std::vector<std::thread> threads;
    {
      std::unique_lock lock(mu_);
      threads.swap(threads_);
    }
    for (std::thread& thread : threads) thread.join();
  }

  const Script script_;
  ByteTokenizer tokenizer_;
  engine::ModelInfo info_;
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<engine::Request> requests_;
  std::vector<std::shared_ptr<Running>> open_;
  std::vector<RequestId> cancelled_;
  std::vector<std::thread> threads_;
  std::uint64_t num_accepted_ = 0;
  std::uint64_t accept_limit_ = 1'000'000;
  bool draining_ = false;
};

/// Sends each piece to each sample in turn, then finishes them; pieces are one token each. A piece
/// of "" is a token whose text is held back.
inline void Say(FakeEngine::Running& running,
                const std::vector<std::string>& pieces,
                engine::FinishReason reason = engine::FinishReason::kStop,
                const std::string& held = "") {
  const engine::Request& request = running.request;
  const auto logprobs_of = [&](const std::string& piece) {
    std::vector<engine::TokenLogprobs> out;
    if (!request.sampling.logprobs) return out;
    out.resize(1);
    out[0].token.id = 7;
    out[0].token.bytes = piece;
    out[0].token.logprob = -0.5F;
    out[0].top.assign(2, out[0].token);
    out[0].top[1].bytes = "x";
    return out;
  };
  for (const std::string& piece : pieces) {
    for (int s = 0; s < request.n; ++s) {
      std::string text = piece;
      if (!piece.empty() && request.n > 1) text += std::to_string(s);
      running.sink(
          engine::TokensEvent{s, {7}, text, piece.empty() ? logprobs_of("") : logprobs_of(text)});
    }
  }
  for (int s = 0; s < request.n; ++s) {
    engine::FinishEvent finish;
    finish.sample_index = s;
    finish.reason = reason;
    finish.text = held;
    finish.usage = {static_cast<int>(request.prompt.size()), 1, static_cast<int>(pieces.size())};
    running.sink(std::move(finish));
  }
}

}  // namespace holmes::server
