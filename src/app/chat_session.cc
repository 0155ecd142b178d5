#include "app/chat_session.h"

#include <deque>
#include <utility>
#include <variant>

#include "base/mutex.h"

namespace holmes::app {

/// What reaches the waiting thread: the engine's events and the user's wish to stop.
struct ChatSession::Mailbox {
  base::Mutex mu;
  base::CondVar changed;
  std::deque<engine::Event> events HOLMES_GUARDED_BY(mu);
  bool answering HOLMES_GUARDED_BY(mu) = false;
  bool stop HOLMES_GUARDED_BY(mu) = false;

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

ChatSession::ChatSession(engine::Engine& engine, ChatOptions options)
    : engine_(engine),
      options_(std::move(options)),
      prompts_(engine.model(),
               engine.tokenizer(),
               server::MakeChatRenderer(engine.model().chat_template)),
      mailbox_(std::make_shared<Mailbox>()) {
  Clear();
}

ChatSession::~ChatSession() = default;

void ChatSession::Clear() {
  messages_.clear();
  if (!options_.system.empty()) messages_.push_back({"system", options_.system});
}

void ChatSession::Stop() {
  base::MutexLock lock(mailbox_->mu);
  if (!mailbox_->answering) return;
  mailbox_->stop = true;
  mailbox_->changed.NotifyAll();
}

StatusOr<ChatAnswer> ChatSession::Ask(std::string_view message,
                                      const std::function<void(std::string_view)>& on_text) {
  text::List conversation;
  messages_.push_back({"user", std::string(message)});
  for (const Message& one : messages_)
    conversation.emplace_back(text::Dict{{"role", one.role}, {"content", one.content}});
  const auto ask = [&]() -> StatusOr<ChatAnswer> {
    engine::Request request;
    HOLMES_ASSIGN_OR_RETURN(
        request.prompt, prompts_.Chat(text::Value(std::move(conversation)), true, text::Value()));
    request.sampling.temperature = static_cast<float>(options_.temperature);
    request.sampling.top_p = static_cast<float>(options_.top_p);
    request.max_tokens = options_.max_tokens;
    if (options_.seed) request.seed = static_cast<std::uint64_t>(*options_.seed);
    {
      base::MutexLock lock(mailbox_->mu);
      mailbox_->events.clear();
      mailbox_->stop = false;
      mailbox_->answering = true;
    }
    HOLMES_ASSIGN_OR_RETURN(
        const engine::Submitted submitted,
        engine_.Submit(std::move(request), [box = mailbox_](engine::Event&& event) {
          base::MutexLock lock(box->mu);
          box->events.push_back(std::move(event));
          box->changed.NotifyAll();
        }));
    return Receive(submitted.id, on_text);
  };
  StatusOr<ChatAnswer> answer = ask();
  {
    base::MutexLock lock(mailbox_->mu);
    mailbox_->answering = false;
  }
  if (answer.ok()) {
    messages_.push_back({"assistant", answer->text});
  } else {
    messages_.pop_back();
  }
  return answer;
}

StatusOr<ChatAnswer> ChatSession::Receive(RequestId id,
                                          const std::function<void(std::string_view)>& on_text) {
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
    answer.usage = finish.usage;
    answer.timings = finish.timings;
    return answer;
  }
}

}  // namespace holmes::app
