/// What goes through the engine's door: requests in, events out. Ids, text and numbers; nothing of
/// HTTP.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"
#include "sched/step_plan.h"

namespace holmes::engine {

using sched::SamplingParams;

enum class Task : std::uint8_t { kGenerate, kEmbed, kScore };
enum class FinishReason : std::uint8_t { kStop, kLength, kCancelled };

struct Usage {
  int prompt_tokens = 0;
  int cached_prompt_tokens = 0;
  int completion_tokens = 0;
};

struct Timings {
  std::chrono::nanoseconds queued{0};         // Submit to the first planned step
  std::chrono::nanoseconds time_to_first{0};  // Submit to the first token
  std::chrono::nanoseconds total{0};
};

struct TokenText {
  TokenId id = -1;
  std::string bytes;  // exactly what the token stands for; not necessarily whole characters
  float logprob = 0.0F;
};

/// One generated token with its alternatives, present when logprobs were asked for.
struct TokenLogprobs {
  TokenText token;
  std::vector<TokenText> top;
};

/// New output of one sample. `text` is whole UTF-8 characters that no stop string can take back any
/// more; events of one sample concatenate to exactly the non-streamed answer. May carry ids with
/// empty text (held back).
struct TokensEvent {
  int sample_index = 0;
  std::vector<TokenId> ids;
  std::string text;
  std::vector<TokenLogprobs> logprobs;
};

/// The last event of one sample. `text` is what was still held back. Sent exactly once per sample.
struct FinishEvent {
  int sample_index = 0;
  FinishReason reason = FinishReason::kStop;
  std::string text;
  std::vector<TokenLogprobs> logprobs;  // of tokens whose text was held back until now
  std::optional<std::string> matched_stop;
  Usage usage;  // completion_tokens of this sample
  Timings timings;
};

/// The request failed as a whole; no other event follows for any sample that has not finished.
struct ErrorEvent {
  Status status;
};

using Event = std::variant<TokensEvent, FinishEvent, ErrorEvent>;

/// Called from an engine worker thread, one call at a time per request, in order. Must not block
/// and must not throw. After the last event (all samples finished, or an error) it is destroyed.
using EventSink = std::function<void(Event&&)>;

struct Request {
  Task task = Task::kGenerate;
  std::vector<TokenId> prompt;  // not empty
  SamplingParams sampling;
  /// Unset: the engine draws one and reports it in FinishEvent's request through `Submitted::seed`.
  /// 0 is a seed like any other.
  std::optional<std::uint64_t> seed;
  int n = 1;           // samples; they share the prompt's KV blocks
  int max_tokens = 0;  // new tokens per sample; 0 = up to the context's end
  int min_tokens =
      0;  // end ids and stop_token_ids cannot be drawn before; stop strings still end it
  bool ignore_eos = false;  // end-of-generation ids do not end it (stop strings still do)
  bool skip_special_tokens = true;
  std::vector<std::string> stop;        // matched on text; never part of the output
  std::vector<TokenId> stop_token_ids;  // end a sample; their text is not output
  AdapterId adapter{0};
  std::string cache_salt;  // tenants with different salts never share KV
  int priority = 0;        // smaller goes first; equal ones by arrival
  std::optional<base::Clock::TimePoint> deadline;
};

struct Submitted {
  RequestId id;
  std::uint64_t seed = 0;  // the one in use
};

}  // namespace holmes::engine
