#include "server/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <variant>

#include "api/errors.h"
#include "server/send_error.h"

namespace holmes::server {
namespace {

int CountCharacters(std::string_view utf8) {
  return static_cast<int>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

api::TokenLogprob ToApi(engine::TokenLogprobs&& in) {
  api::TokenLogprob out{std::move(in.token.bytes), in.token.logprob, {}};
  for (engine::TokenText& top : in.top) out.top.emplace_back(std::move(top.bytes), top.logprob);
  return out;
}

std::string_view NameOf(engine::FinishReason reason) {
  return reason == engine::FinishReason::kLength ? "length" : "stop";
}

}  // namespace

Answer::Answer(Options options,
               std::shared_ptr<net::ResponseWriter> writer,
               engine::Engine& engine,
               std::shared_ptr<Metrics> metrics)
    : options_(std::move(options)),
      writer_(std::move(writer)),
      engine_(engine),
      metrics_(std::move(metrics)) {
  samples_.resize(static_cast<std::size_t>(options_.n) *
                  static_cast<std::size_t>(options_.num_prompts));
  prompt_usage_.resize(static_cast<std::size_t>(options_.num_prompts));
}

void Answer::ListenForDisconnect() {
  // Weak: the writer keeps the callback, and this keeps the writer.
  writer_->OnDisconnect([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    {
      base::MutexLock lock(self->mu_);
      self->client_gone_ = true;
      self->End(Outcome::kCancelled);
    }
    self->CancelAll();
  });
}

bool Answer::client_gone() const {
  base::MutexLock lock(mu_);
  return client_gone_;
}

engine::EventSink Answer::SinkOf(int prompt_idx) {
  return [self = shared_from_this(), prompt_idx](engine::Event&& event) {
    self->OnEvent(prompt_idx, std::move(event));
  };
}

void Answer::AddSubmitted(const engine::Submitted& submitted) {
  bool gone;
  {
    base::MutexLock lock(mu_);
    if (ids_.empty()) options_.head.seed = submitted.seed;
    ids_.push_back(submitted.id);
    gone = ended_;
  }
  if (gone) engine_.Cancel(submitted.id);
}

void Answer::Open() {
  base::MutexLock lock(mu_);
  open_ = true;
  for (auto& [prompt_idx, event] : early_) Handle(prompt_idx, std::move(event));
  early_.clear();
}

void Answer::Abort(const Status& status) {
  {
    base::MutexLock lock(mu_);
    FailLocked(status);
  }
  CancelAll();
}

void Answer::CancelAll() {
  std::vector<RequestId> ids;
  {
    base::MutexLock lock(mu_);
    ids = ids_;
  }
  for (const RequestId id : ids) engine_.Cancel(id);
}

void Answer::OnEvent(int prompt_idx, engine::Event&& event) {
  bool failed;
  {
    base::MutexLock lock(mu_);
    if (!open_) {
      early_.emplace_back(prompt_idx, std::move(event));
      return;
    }
    const bool ended_before = ended_;
    Handle(prompt_idx, std::move(event));
    failed = !ended_before && ended_ && num_finished_ < static_cast<int>(samples_.size());
  }
  if (failed) CancelAll();  // one prompt's failure ends the others
}

void Answer::Handle(int prompt_idx, engine::Event&& event) {
  if (ended_) return;
  if (auto* tokens = std::get_if<engine::TokensEvent>(&event)) {
    HandleTokens(prompt_idx, std::move(*tokens));
  } else if (auto* finish = std::get_if<engine::FinishEvent>(&event)) {
    HandleFinish(prompt_idx, std::move(*finish));
  } else {
    FailLocked(std::get<engine::ErrorEvent>(event).status);
  }
}

void Answer::HandleTokens(int prompt_idx, engine::TokensEvent&& event) {
  const int index = prompt_idx * options_.n + event.sample_index;
  if (!event.ids.empty()) NoteTokens(samples_[static_cast<std::size_t>(index)]);
  AddText(index, std::move(event.text), std::move(event.logprobs));
}

void Answer::NoteTokens(Sample& sample) {
  if (sample.first_token != std::chrono::steady_clock::time_point{}) return;
  sample.first_token = std::chrono::steady_clock::now();
  if (std::exchange(first_token_seen_, true)) return;
  metrics_->ObserveFirstToken(sample.first_token - options_.received);
}

void Answer::HandleFinish(int prompt_idx, engine::FinishEvent&& event) {
  const int index = prompt_idx * options_.n + event.sample_index;
  if (event.reason == engine::FinishReason::kCancelled) {
    FailLocked(
        base::UnavailableError("the request was cancelled because the server is shutting down"));
    return;
  }
  Sample& sample = samples_[static_cast<std::size_t>(index)];
  if (event.usage.completion_tokens > 0) NoteTokens(sample);
  AddText(index, std::move(event.text), std::move(event.logprobs));
  sample.finished = true;
  sample.finish_reason = NameOf(event.reason);
  sample.completion_tokens = event.usage.completion_tokens;
  api::Usage& usage = prompt_usage_[static_cast<std::size_t>(prompt_idx)];
  usage.prompt_tokens = event.usage.prompt_tokens;
  usage.cached_tokens = event.usage.cached_prompt_tokens;
  if (sample.completion_tokens > 1) {
    const auto taken = std::chrono::steady_clock::now() - sample.first_token;
    metrics_->ObserveTokenTime(taken / (sample.completion_tokens - 1));
  }
  if (options_.stream) SendDelta(index, "", sample.finish_reason);
  ++num_finished_;
  FinishIfDone();
}

void Answer::AddText(int index, std::string text, std::vector<engine::TokenLogprobs>&& logprobs) {
  Sample& sample = samples_[static_cast<std::size_t>(index)];
  if (options_.logprobs) {
    for (engine::TokenLogprobs& one : logprobs) sample.logprobs.push_back(ToApi(std::move(one)));
  }
  if (!options_.stream) {
    sample.text += text;
  } else if (!text.empty()) {
    SendDelta(index, std::move(text), "");
  }
}

void Answer::StartStream() {
  if (std::exchange(started_, true)) return;
  net::Headers headers = options_.headers;
  headers.push_back({"Content-Type", "text/event-stream; charset=utf-8"});
  headers.push_back({"Cache-Control", "no-cache"});
  headers.push_back({"X-Accel-Buffering", "no"});  // nginx would hold events back
  writer_->Start(200, std::move(headers));
}

void Answer::SendDelta(int index, std::string text, std::string_view finish_reason) {
  StartStream();
  Sample& sample = samples_[static_cast<std::size_t>(index)];
  std::string out;
  if (options_.chat && !std::exchange(sample.role_sent, true)) {
    out += api::SseEvent(api::ChatRoleChunk(options_.head, index, options_.include_usage));
  }
  api::Choice choice{index, std::move(text), std::nullopt, finish_reason};
  // Logprobs of tokens whose text was held back leave with the next text.
  if (options_.logprobs && !sample.logprobs.empty())
    choice.logprobs = std::exchange(sample.logprobs, {});
  out += api::SseEvent(
      options_.chat ? api::ChatDeltaChunk(options_.head, choice, options_.include_usage)
                    : api::CompletionDeltaChunk(
                          options_.head, choice, sample.characters_sent, options_.include_usage));
  sample.characters_sent += CountCharacters(choice.text);
  writer_->Write(out);
}

void Answer::FailLocked(const Status& status) {
  if (ended_) return;
  if (started_) {
    writer_->Write(api::SseEvent(api::ToErrorResponse(status).body));
    writer_->Finish();
  } else {
    SendError(*writer_, api::ToErrorResponse(status), options_.headers);
  }
  const bool refused = status.code() == StatusCode::kInvalidArgument ||
                       status.code() == StatusCode::kUnimplemented ||
                       status.code() == StatusCode::kResourceExhausted ||
                       status.code() == StatusCode::kNotFound;
  End(refused ? Outcome::kRejected : Outcome::kFailed);
}

api::Usage Answer::TotalUsage() const {
  api::Usage total;
  for (const api::Usage& usage : prompt_usage_) {
    total.prompt_tokens += usage.prompt_tokens;
    total.cached_tokens += usage.cached_tokens;
  }
  for (const Sample& sample : samples_) total.completion_tokens += sample.completion_tokens;
  return total;
}

void Answer::FinishIfDone() {
  if (num_finished_ < static_cast<int>(samples_.size())) return;
  if (options_.stream) {
    std::string out;
    if (options_.include_usage)
      out += api::SseEvent(api::UsageChunk(options_.head, options_.chat, TotalUsage()));
    out += api::kSseDone;
    writer_->Write(out);
    writer_->Finish();
  } else {
    std::vector<api::Choice> choices;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      Sample& sample = samples_[i];
      api::Choice choice{
          static_cast<int>(i), std::move(sample.text), std::nullopt, sample.finish_reason};
      if (options_.logprobs) choice.logprobs = std::move(sample.logprobs);
      choices.push_back(std::move(choice));
    }
    net::Headers headers = options_.headers;
    headers.push_back({"Content-Type", "application/json"});
    writer_->Send(200,
                  std::move(headers),
                  options_.chat ? api::ChatCompletionBody(options_.head, choices, TotalUsage())
                                : api::CompletionBody(options_.head, choices, TotalUsage()));
  }
  metrics_->ObserveRequest(std::chrono::steady_clock::now() - options_.received);
  End(Outcome::kOk);
}

void Answer::End(Outcome outcome) {
  if (std::exchange(ended_, true)) return;
  metrics_->CountRequest(outcome);
}

}  // namespace holmes::server
