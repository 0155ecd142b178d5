/// A conversation with an engine in this process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "server/prompt.h"

namespace holmes::app {

struct ChatOptions {
  std::string system;  // empty = none
  double temperature = 0.7;
  double top_p = 0.95;
  int max_tokens = 0;  // of one answer; 0 = up to the context's end
  std::optional<std::int64_t> seed;
};

struct ChatAnswer {
  std::string text;
  bool stopped = false;  // by Stop
  engine::Usage usage;
  engine::Timings timings;
};

/// Ask, Clear and num_turns from one thread; Stop from any.
class ChatSession {
 public:
  /// `engine` outlives the session.
  ChatSession(engine::Engine& engine, ChatOptions options);
  ~ChatSession();

  /// Sends the conversation with `message` at its end; `on_text` gets the answer piece by piece on
  /// this thread. Both stay in the conversation, also when the answer was stopped. Errors: those of
  /// the chat template and of Engine::Submit; the conversation is then as before.
  StatusOr<ChatAnswer> Ask(std::string_view message,
                           const std::function<void(std::string_view)>& on_text);

  /// Ends the answer that is being given, if there is one.
  void Stop();
  /// Forgets everything but the system message.
  void Clear();

 private:
  struct Mailbox;
  StatusOr<ChatAnswer> Receive(RequestId id, const std::function<void(std::string_view)>& on_text);

  engine::Engine& engine_;
  const ChatOptions options_;
  const server::PromptBuilder prompts_;
  struct Message {
    std::string role;
    std::string content;
  };
  std::vector<Message> messages_;
  const std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace holmes::app
