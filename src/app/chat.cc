#include "app/chat.h"

namespace holmes::app {

void ChatSession::Clear() {
  messages_.clear();
  if (!system_.empty()) messages_.push_back({"system", system_});
}

StatusOr<ChatAnswer> ChatSession::Ask(std::string_view message, const TextCallback& on_text) {
  messages_.push_back({"user", std::string(message)});
  StatusOr<ChatAnswer> answer = source_.Answer(messages_, on_text);
  if (answer.ok()) {
    messages_.push_back({"assistant", answer->text});
  } else {
    messages_.pop_back();
  }
  return answer;
}

}  // namespace holmes::app
