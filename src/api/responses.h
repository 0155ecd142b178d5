/// Results as OpenAI's JSON, whole and in chunks.
/// Extension: the seed in use is reported as "seed".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace holmes::api {

struct Usage {
  int prompt_tokens = 0;
  int cached_tokens = 0;
  int completion_tokens = 0;
};

/// A token as logprobs show it: its bytes need not be whole characters.
struct TokenLogprob {
  std::string bytes;
  float logprob = 0.0F;
  std::vector<std::pair<std::string, float>> top;  // (bytes, logprob), descending
};

/// What all parts of one answer share.
struct ResponseHead {
  std::string id;  // MakeId
  std::string model;
  std::int64_t created = 0;  // Unix seconds
  std::uint64_t seed = 0;
};

struct Choice {
  int index = 0;
  std::string text;
  std::optional<std::vector<TokenLogprob>> logprobs;  // set when asked for
  std::string_view finish_reason;  // "stop" or "length"; empty in a chunk that is not the last
};

/// "chatcmpl-" or "cmpl-" and 24 random characters.
std::string MakeId(std::string_view prefix);

std::string ChatCompletionBody(const ResponseHead& head,
                               const std::vector<Choice>& choices,
                               const Usage& usage);
std::string CompletionBody(const ResponseHead& head,
                           const std::vector<Choice>& choices,
                           const Usage& usage);

/// The JSON of streamed chunks, without SSE framing. `include_usage`: "usage": null in all but the
/// last.
std::string ChatRoleChunk(const ResponseHead& head, int index, bool include_usage);
/// A delta of content, and of the finish reason where there is one (then the delta is empty).
std::string ChatDeltaChunk(const ResponseHead& head, const Choice& choice, bool include_usage);
/// `text_offset`: characters of the choice's text before this chunk (only for logprobs).
std::string CompletionDeltaChunk(const ResponseHead& head,
                                 const Choice& choice,
                                 int text_offset,
                                 bool include_usage);
std::string UsageChunk(const ResponseHead& head, bool chat, const Usage& usage);

/// "data: ...\n\n".
std::string SseEvent(std::string_view json);
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

struct ModelCard {
  std::string id;
  std::int64_t created = 0;
  int context_tokens = 0;
};
std::string ModelBody(const ModelCard& model);
std::string ModelListBody(const std::vector<ModelCard>& models);
std::string TokenizeBody(const std::vector<TokenId>& tokens, int context_tokens);
std::string DetokenizeBody(std::string_view text);

}  // namespace holmes::api
