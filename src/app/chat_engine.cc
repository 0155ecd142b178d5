#include <deque>
#include <utility>
#include <variant>

#include "app/chat.h"
#include "base/mutex.h"
#include "server/generation.h"
#include "server/prompt.h"

namespace holmes::app {
namespace {

/// What reaches the waiting thread: the engine's events and the user's wish to stop. Shared with
/// the engine's sink, which may outlive an answer.
struct Mailbox {
  base::Mutex mu;
  base::CondVar changed;
  std::deque<engine::Event> events HOLMES_GUARDED_BY(mu);
  bool answering HOLMES_GUARDED_BY(mu) = false;
  bool stop HOLMES_GUARDED_BY(mu) = false;

  void Put(engine::Event&& event) {
    base::MutexLock lock(mu);
    events.push_back(std::move(event));
    changed.NotifyAll();
  }
  void SetAnswering(bool now) {
    base::MutexLock lock(mu);
    answering = now;
    stop = false;
  }
  void Stop() {
    base::MutexLock lock(mu);
    if (!answering) return;
    stop = true;
    changed.NotifyAll();
  }
  /// Waits for an event; nothing when the user wants to stop, once.
  std::optional<engine::Event> Next() {
    base::MutexLock lock(mu);
    while (events.empty() && !stop) changed.Wait(mu);
    if (std::exchange(stop, false)) return std::nullopt;
    engine::Event event = std::move(events.front());
    events.pop_front();
    return event;
  }
};

class EngineSource final : public AnswerSource {
 public:
  EngineSource(engine::Engine& engine, const ChatOptions& options)
      : engine_(engine),
        options_(options),
        prompts_(engine.model(),
                 engine.tokenizer(),
                 server::MakeChatRenderer(engine.model().chat_template)),
        mailbox_(std::make_shared<Mailbox>()) {}

  StatusOr<ChatAnswer> Answer(const std::vector<ChatMessage>& messages,
                              const TextCallback& on_text) override {
    text::List conversation;
    for (const ChatMessage& one : messages)
      conversation.emplace_back(text::Dict{{"role", one.role}, {"content", one.content}});
    engine::Request request = server::ToEngineRequest({}, options_.sampling);
    HOLMES_ASSIGN_OR_RETURN(
        request.prompt, prompts_.Chat(text::Value(std::move(conversation)), true, text::Value()));
    request.max_tokens = options_.max_tokens;
    if (options_.seed) request.seed = static_cast<std::uint64_t>(*options_.seed);
    mailbox_->SetAnswering(true);
    HOLMES_ASSIGN_OR_RETURN(
        const engine::Submitted submitted,
        engine_.Submit(std::move(request),
                       [box = mailbox_](engine::Event&& event) { box->Put(std::move(event)); }));
    StatusOr<ChatAnswer> answer = Receive(submitted.id, on_text);
    mailbox_->SetAnswering(false);
    return answer;
  }

  void Stop() override { mailbox_->Stop(); }

 private:
  StatusOr<ChatAnswer> Receive(RequestId id, const TextCallback& on_text) {
    ChatAnswer answer;
    const auto take = [&](const std::string& text) {
      answer.text += text;
      if (!text.empty()) on_text(text);
    };
    while (true) {
      std::optional<engine::Event> event = mailbox_->Next();
      if (!event) {
        engine_.Cancel(id);  // a finish event still comes
        continue;
      }
      if (const auto* error = std::get_if<engine::ErrorEvent>(&*event)) return error->status;
      if (const auto* tokens = std::get_if<engine::TokensEvent>(&*event)) {
        take(tokens->text);
        continue;
      }
      const auto& finish = std::get<engine::FinishEvent>(*event);
      take(finish.text);
      answer.stopped = finish.reason == engine::FinishReason::kCancelled;
      answer.prompt_tokens = finish.usage.prompt_tokens;
      answer.cached_prompt_tokens = finish.usage.cached_prompt_tokens;
      answer.completion_tokens = finish.usage.completion_tokens;
      answer.time_to_first = finish.timings.time_to_first;
      answer.total = finish.timings.total;
      return answer;
    }
  }

  engine::Engine& engine_;
  const ChatOptions options_;
  const server::PromptBuilder prompts_;
  const std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace

std::unique_ptr<AnswerSource> MakeEngineSource(engine::Engine& engine, const ChatOptions& options) {
  return std::make_unique<EngineSource>(engine, options);
}

}  // namespace holmes::app
