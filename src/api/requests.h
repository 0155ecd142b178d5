/// Bodies of the HTTP API as typed requests.
/// Sources: OpenAI's API reference (chat completions, completions); vLLM's extensions top_k, min_p,
/// repetition_penalty, min_tokens, stop_token_ids, ignore_eos, skip_special_tokens,
/// add_generation_prompt, chat_template_kwargs, priority, cache_salt and the /tokenize pair. Rules:
/// an unknown field is an error that names the nearest known one; a known field that is not
/// supported yet is an error by name, unless its value asks for nothing ("tools": [],
/// "response_format": {"type": "text"}); null is the same as absent; of a key given twice the last
/// counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "text/value.h"

namespace holmes::api {

/// What both kinds of completion have. Absent = the model's or the engine's default.
struct GenerationFields {
  std::optional<double> temperature;         // [0, 2]
  std::optional<double> top_p;               // (0, 1]
  std::optional<double> min_p;               // [0, 1]
  std::optional<double> presence_penalty;    // [-2, 2]
  std::optional<double> frequency_penalty;   // [-2, 2]
  std::optional<double> repetition_penalty;  // (0, 10]
  std::optional<int> top_k;                  // -1 or 0 = off
  std::optional<std::uint64_t> seed;         // any 64-bit integer; 0 is a seed
  std::optional<int>
      max_tokens;  // new tokens, >= 1 (completions also 0 with echo, which is not supported yet)
  int min_tokens = 0;
  int n = 1;                                          // 1 to 128
  std::vector<std::pair<TokenId, float>> logit_bias;  // ascending ids; values in [-100, 100]
  std::vector<std::string> stop;                      // up to 16, not empty
  std::vector<TokenId> stop_token_ids;
  bool ignore_eos = false;
  bool skip_special_tokens = true;
  bool logprobs = false;
  int top_logprobs = 0;  // 0 to 20
  bool stream = false;
  bool include_usage = false;
  int priority = 0;
  std::string cache_salt;
};

struct ChatCompletionRequest {
  std::string model;
  /// A list of dicts as the chat template sees them: role, content (string), name, tool_calls,
  /// tool_call_id.
  text::Value messages;
  bool add_generation_prompt = true;
  /// Extra template variables.
  text::Value chat_template_kwargs;
  GenerationFields fields;
};

using Prompt = std::variant<std::string, std::vector<TokenId>>;

struct CompletionRequest {
  std::string model;
  std::vector<Prompt> prompts;  // at least one, none empty
  GenerationFields fields;
};

struct TokenizeRequest {
  std::string model;
  std::string prompt;  // when there are no messages
  std::optional<text::Value> messages;
  bool add_generation_prompt = true;
  bool add_special_tokens = true;
};

struct DetokenizeRequest {
  std::string model;
  std::vector<TokenId> tokens;
};

/// What a request is checked against once the model is known.
struct ModelLimits {
  int vocab_size = 0;
  int context_tokens = 0;
};

/// Errors of all Parse functions: kInvalidArgument (kUnimplemented for what is not supported yet)
/// with `param` set to the field where there is one.
StatusOr<ChatCompletionRequest> ParseChatCompletionRequest(std::string_view body);
StatusOr<CompletionRequest> ParseCompletionRequest(std::string_view body);
StatusOr<TokenizeRequest> ParseTokenizeRequest(std::string_view body);
StatusOr<DetokenizeRequest> ParseDetokenizeRequest(std::string_view body);

/// Ids of logit_bias and stop_token_ids lie in the vocabulary.
Status ValidateFields(const GenerationFields& fields, const ModelLimits& limits);
/// `param` names the field that the ids come from.
Status ValidateIds(const std::vector<TokenId>& ids,
                   const ModelLimits& limits,
                   std::string_view param);

}  // namespace holmes::api
