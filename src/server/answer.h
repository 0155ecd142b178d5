/// Events of the engine to one answer of the API.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/responses.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "net/http_types.h"
#include "server/metrics.h"

namespace holmes::server {

/// One API request: one or more engine requests (a completion of several prompts), each of n
/// samples; choice index = prompt index * n + sample. Life: Create, ListenForDisconnect, a Submit
/// per prompt with SinkOf, then Open or Abort. Sinks and the server's worker share it. Thread-safe.
/// Events that come before Open wait for it, so that a later prompt's refusal can still be a plain
/// error.
class Answer : public std::enable_shared_from_this<Answer> {
 public:
  struct Options {
    bool chat = true;
    bool stream = false;
    bool include_usage = false;
    bool logprobs = false;
    int n = 1;
    int num_prompts = 1;
    api::ResponseHead head;  // without the seed
    net::Headers headers;    // of the answer, whatever it is
    std::chrono::steady_clock::time_point received;
  };
  Answer(Options options,
         std::shared_ptr<net::ResponseWriter> writer,
         engine::Engine& engine,
         std::shared_ptr<Metrics> metrics);

  /// From here on a vanished client cancels what was and will be submitted.
  void ListenForDisconnect();
  bool client_gone() const;
  engine::EventSink SinkOf(int prompt_idx);
  void AddSubmitted(const engine::Submitted& submitted);
  void Open();
  /// Cancels what was submitted and answers with the error.
  void Abort(const Status& status);

 private:
  struct Sample {
    std::string text;
    std::vector<api::TokenLogprob> logprobs;
    int characters_sent = 0;
    int completion_tokens = 0;
    bool role_sent = false;
    bool finished = false;
    std::string_view finish_reason;
    std::chrono::steady_clock::time_point first_token{};
  };

  void OnEvent(int prompt_idx, engine::Event&& event);
  void Handle(int prompt_idx, engine::Event&& event) HOLMES_REQUIRES(mu_);
  void HandleTokens(int prompt_idx, engine::TokensEvent&& event) HOLMES_REQUIRES(mu_);
  void HandleFinish(int prompt_idx, engine::FinishEvent&& event) HOLMES_REQUIRES(mu_);
  void AddText(int index, std::string text, std::vector<engine::TokenLogprobs>&& logprobs)
      HOLMES_REQUIRES(mu_);
  void NoteTokens(Sample& sample) HOLMES_REQUIRES(mu_);
  void SendDelta(int index, std::string text, std::string_view finish_reason) HOLMES_REQUIRES(mu_);
  void StartStream() HOLMES_REQUIRES(mu_);
  void FailLocked(const Status& status) HOLMES_REQUIRES(mu_);
  void FinishIfDone() HOLMES_REQUIRES(mu_);
  void End(Outcome outcome) HOLMES_REQUIRES(mu_);
  api::Usage TotalUsage() const HOLMES_REQUIRES(mu_);
  void CancelAll();

  Options options_;
  const std::shared_ptr<net::ResponseWriter> writer_;
  engine::Engine& engine_;
  const std::shared_ptr<Metrics> metrics_;

  mutable base::Mutex mu_;
  bool open_ HOLMES_GUARDED_BY(mu_) = false;
  bool client_gone_ HOLMES_GUARDED_BY(mu_) = false;
  bool started_ HOLMES_GUARDED_BY(mu_) = false;  // the stream
  bool ended_ HOLMES_GUARDED_BY(mu_) = false;
  bool first_token_seen_ HOLMES_GUARDED_BY(mu_) = false;
  std::vector<std::pair<int, engine::Event>> early_ HOLMES_GUARDED_BY(mu_);
  std::vector<RequestId> ids_ HOLMES_GUARDED_BY(mu_);
  std::vector<Sample> samples_ HOLMES_GUARDED_BY(mu_);
  std::vector<api::Usage> prompt_usage_
      HOLMES_GUARDED_BY(mu_);  // prompt and cached tokens of each prompt
  int num_finished_ HOLMES_GUARDED_BY(mu_) = 0;
};

}  // namespace holmes::server
