/// A conversation in the terminal, and the two places where its answers come from.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "server/generation.h"

namespace holmes::app {

struct ChatOptions {
  std::string system;  // empty = none
  server::GenerationDefaults sampling;
  int max_tokens = 0;  // of one answer; 0 = up to the context's end
  std::optional<std::int64_t> seed;
};

struct ChatMessage {
  std::string role;
  std::string content;
};

struct ChatAnswer {
  std::string text;
  bool stopped = false;  // by Stop
  int prompt_tokens = 0;
  int cached_prompt_tokens = 0;
  int completion_tokens = 0;
  std::chrono::nanoseconds time_to_first{0};
  std::chrono::nanoseconds total{0};
};

using TextCallback = std::function<void(std::string_view)>;

/// Answer from one thread at a time; Stop from any.
class AnswerSource {
 public:
  virtual ~AnswerSource() = default;
  /// `on_text` gets the answer piece by piece on this thread.
  virtual StatusOr<ChatAnswer> Answer(const std::vector<ChatMessage>& messages,
                                      const TextCallback& on_text) = 0;
  /// Ends the answer that is being given, if there is one; Answer then returns what there was.
  virtual void Stop() = 0;
};

/// Answers of an engine in this process, which outlives the source. Errors of Answer: those of the
/// chat template and of Engine::Submit.
std::unique_ptr<AnswerSource> MakeEngineSource(engine::Engine& engine, const ChatOptions& options);

struct UrlSourceOptions {
  std::string url;      // "http://127.0.0.1:8000", with or without "/v1"
  std::string api_key;  // empty = none
  std::string model;    // empty = the first that the server lists
};
/// Answers of any server with OpenAI's API. Errors: kUnavailable (not reached), the server's own
/// messages, kDataLoss (not OpenAI's format).
StatusOr<std::unique_ptr<AnswerSource>> MakeUrlSource(const UrlSourceOptions& where,
                                                      const ChatOptions& options);

/// The messages so far. One thread.
class ChatSession {
 public:
  ChatSession(AnswerSource& source, std::string system)
      : source_(source), system_(std::move(system)) {
    Clear();
  }

  /// Sends the conversation with `message` at its end. Message and answer stay in it, also when the
  /// answer was stopped; after an error it is as before.
  StatusOr<ChatAnswer> Ask(std::string_view message, const TextCallback& on_text);
  /// Forgets everything but the system message.
  void Clear();

 private:
  AnswerSource& source_;
  const std::string system_;
  std::vector<ChatMessage> messages_;
};

}  // namespace holmes::app
