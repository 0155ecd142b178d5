#include <boost/json.hpp>
#include <chrono>
#include <utility>

#include "app/chat.h"
#include "app/openai_client.h"
#include "base/mutex.h"
#include "net/http_client.h"

namespace holmes::app {
namespace json = boost::json;
namespace {

class UrlSource final : public AnswerSource {
 public:
  UrlSource(Endpoint endpoint, std::string model, const ChatOptions& options)
      : endpoint_(std::move(endpoint)), model_(std::move(model)), options_(options) {}

  StatusOr<ChatAnswer> Answer(const std::vector<ChatMessage>& messages,
                              const TextCallback& on_text) override {
    const net::CancelSource cancel = Begin();
    const auto start = std::chrono::steady_clock::now();
    ChatAnswer answer;
    Status broken;
    const auto on_event = [&](net::SseEvent&& event) {
      if (event.data == "[DONE]") return true;
      StatusOr<StreamChunk> chunk = ParseChunk(event.data);
      if (!chunk.ok()) {
        broken = chunk.status();
        return false;
      }
      if (!chunk->text.empty() && answer.text.empty())
        answer.time_to_first = std::chrono::steady_clock::now() - start;
      answer.text += chunk->text;
      if (!chunk->text.empty()) on_text(chunk->text);
      if (chunk->has_usage) {
        answer.prompt_tokens = chunk->prompt_tokens;
        answer.cached_prompt_tokens = chunk->cached_prompt_tokens;
        answer.completion_tokens = chunk->completion_tokens;
      }
      return true;
    };
    const StatusOr<net::ClientResponse> response = net::FetchEvents(
        MakeRequest(endpoint_, "/chat/completions", Body(messages)), on_event, &cancel);
    answer.total = std::chrono::steady_clock::now() - start;
    answer.stopped = End();
    if (!broken.ok()) return broken;
    if (answer.stopped) return answer;
    if (!response.ok()) return response.status();
    HOLMES_RETURN_IF_ERROR(ErrorOf(*response));
    return answer;
  }

  void Stop() override {
    base::MutexLock lock(mu_);
    if (cancel_) cancel_->Cancel();
  }

 private:
  net::CancelSource Begin() {
    base::MutexLock lock(mu_);
    return cancel_.emplace();
  }
  /// Whether Stop was called.
  bool End() {
    base::MutexLock lock(mu_);
    const bool stopped = cancel_->cancelled();
    cancel_.reset();
    return stopped;
  }

  std::string Body(const std::vector<ChatMessage>& messages) const {
    json::array list;
    for (const ChatMessage& one : messages)
      list.push_back(json::object{{"role", one.role}, {"content", one.content}});
    json::object body{{"model", model_},
                      {"messages", std::move(list)},
                      {"stream", true},
                      {"stream_options", {{"include_usage", true}}}};
    // What the user left open is the server's to choose.
    const auto add = [&body](const char* name, const auto& value) {
      if (value) body[name] = *value;
    };
    add("temperature", options_.sampling.temperature);
    add("top_p", options_.sampling.top_p);
    add("top_k", options_.sampling.top_k);
    add("min_p", options_.sampling.min_p);
    add("repetition_penalty", options_.sampling.repetition_penalty);
    if (options_.max_tokens > 0) body["max_tokens"] = options_.max_tokens;
    if (options_.seed) body["seed"] = *options_.seed;
    return json::serialize(body);
  }

  const Endpoint endpoint_;
  const std::string model_;
  const ChatOptions options_;
  base::Mutex mu_;
  std::optional<net::CancelSource> cancel_ HOLMES_GUARDED_BY(mu_);
};

}  // namespace

StatusOr<std::unique_ptr<AnswerSource>> MakeUrlSource(const UrlSourceOptions& where,
                                                      const ChatOptions& options) {
  Endpoint endpoint = MakeEndpoint(where.url, where.api_key);
  std::string model = where.model;
  if (model.empty()) {
    HOLMES_ASSIGN_OR_RETURN(model, FirstModel(endpoint));
  }
  return std::unique_ptr<AnswerSource>(
      std::make_unique<UrlSource>(std::move(endpoint), std::move(model), options));
}

}  // namespace holmes::app
