#include "api/responses.h"

#include <fmt/format.h>

#include <random>

#include "api/json_writer.h"
#include "text/utf8.h"

namespace holmes::api {
namespace {

void WriteHead(JsonWriter& json, const ResponseHead& head, std::string_view object) {
  json.Key("id")
      .String(head.id)
      .Key("object")
      .String(object)
      .Key("created")
      .Int(head.created)
      .Key("model")
      .String(head.model);
}

void WriteUsage(JsonWriter& json, const Usage& usage) {
  json.Key("usage").BeginObject();
  json.Key("prompt_tokens").Int(usage.prompt_tokens);
  json.Key("completion_tokens").Int(usage.completion_tokens);
  json.Key("total_tokens").Int(usage.prompt_tokens + usage.completion_tokens);
  json.Key("prompt_tokens_details")
      .BeginObject()
      .Key("cached_tokens")
      .Int(usage.cached_tokens)
      .EndObject();
  json.EndObject();
}

void WriteFinishReason(JsonWriter& json, std::string_view reason) {
  json.Key("finish_reason");
  reason.empty() ? json.Null() : json.String(reason);
}

void WriteChatToken(JsonWriter& json, std::string_view bytes, float logprob) {
  json.Key("token").String(bytes).Key("logprob").Number(logprob).Key("bytes").BeginArray();
  for (const char c : bytes) json.Int(static_cast<unsigned char>(c));
  json.EndArray();
}

void WriteChatLogprobs(JsonWriter& json, const std::optional<std::vector<TokenLogprob>>& logprobs) {
  json.Key("logprobs");
  if (!logprobs) {
    json.Null();
    return;
  }
  json.BeginObject().Key("content").BeginArray();
  for (const TokenLogprob& token : *logprobs) {
    json.BeginObject();
    WriteChatToken(json, token.bytes, token.logprob);
    json.Key("top_logprobs").BeginArray();
    for (const auto& [bytes, logprob] : token.top) {
      json.BeginObject();
      WriteChatToken(json, bytes, logprob);
      json.EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray().Key("refusal").Null().EndObject();
}

int CountCharacters(std::string_view text) {
  int count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

/// The older format: parallel arrays.
void WriteCompletionLogprobs(JsonWriter& json,
                             const std::optional<std::vector<TokenLogprob>>& logprobs,
                             int text_offset) {
  json.Key("logprobs");
  if (!logprobs) {
    json.Null();
    return;
  }
  json.BeginObject().Key("tokens").BeginArray();
  for (const TokenLogprob& token : *logprobs) json.String(token.bytes);
  json.EndArray().Key("token_logprobs").BeginArray();
  for (const TokenLogprob& token : *logprobs) json.Number(token.logprob);
  json.EndArray().Key("top_logprobs").BeginArray();
  for (const TokenLogprob& token : *logprobs) {
    json.BeginObject();
    for (const auto& [bytes, logprob] : token.top) json.Key(bytes).Number(logprob);
    json.EndObject();
  }
  json.EndArray().Key("text_offset").BeginArray();
  text::Utf8Stream stream;
  for (const TokenLogprob& token : *logprobs) {
    json.Int(text_offset);
    text_offset += CountCharacters(stream.Push(token.bytes));
  }
  json.EndArray().EndObject();
}

}  // namespace

std::string MakeId(std::string_view prefix) {
  static constexpr std::string_view kAlphabet = "0123456789abcdefghijklmnopqrstuvwxyz";
  thread_local std::mt19937_64 rng{std::random_device{}()};
  std::string out(prefix);
  for (int i = 0; i < 24; ++i) out.push_back(kAlphabet[rng() % kAlphabet.size()]);
  return out;
}

std::string ChatCompletionBody(const ResponseHead& head,
                               const std::vector<Choice>& choices,
                               const Usage& usage) {
  JsonWriter json;
  json.BeginObject();
  WriteHead(json, head, "chat.completion");
  json.Key("choices").BeginArray();
  for (const Choice& choice : choices) {
    json.BeginObject().Key("index").Int(choice.index).Key("message").BeginObject();
    json.Key("role")
        .String("assistant")
        .Key("content")
        .String(choice.text)
        .Key("refusal")
        .Null()
        .EndObject();
    WriteChatLogprobs(json, choice.logprobs);
    WriteFinishReason(json, choice.finish_reason);
    json.EndObject();
  }
  json.EndArray();
  WriteUsage(json, usage);
  json.Key("seed").Uint(head.seed).Key("system_fingerprint").Null().EndObject();
  return json.Take();
}

std::string CompletionBody(const ResponseHead& head,
                           const std::vector<Choice>& choices,
                           const Usage& usage) {
  JsonWriter json;
  json.BeginObject();
  WriteHead(json, head, "text_completion");
  json.Key("choices").BeginArray();
  for (const Choice& choice : choices) {
    json.BeginObject().Key("index").Int(choice.index).Key("text").String(choice.text);
    WriteCompletionLogprobs(json, choice.logprobs, 0);
    WriteFinishReason(json, choice.finish_reason);
    json.EndObject();
  }
  json.EndArray();
  WriteUsage(json, usage);
  json.Key("seed").Uint(head.seed).Key("system_fingerprint").Null().EndObject();
  return json.Take();
}

std::string ChatRoleChunk(const ResponseHead& head, int index, bool include_usage) {
  JsonWriter json;
  json.BeginObject();
  WriteHead(json, head, "chat.completion.chunk");
  json.Key("choices").BeginArray().BeginObject().Key("index").Int(index);
  json.Key("delta")
      .BeginObject()
      .Key("role")
      .String("assistant")
      .Key("content")
      .String("")
      .EndObject();
  json.Key("logprobs").Null();
  WriteFinishReason(json, "");
  json.EndObject().EndArray().Key("seed").Uint(head.seed);
  if (include_usage) json.Key("usage").Null();
  json.EndObject();
  return json.Take();
}

std::string ChatDeltaChunk(const ResponseHead& head, const Choice& choice, bool include_usage) {
  JsonWriter json;
  json.BeginObject();
  WriteHead(json, head, "chat.completion.chunk");
  json.Key("choices")
      .BeginArray()
      .BeginObject()
      .Key("index")
      .Int(choice.index)
      .Key("delta")
      .BeginObject();
  if (!choice.text.empty()) json.Key("content").String(choice.text);
  json.EndObject();
  WriteChatLogprobs(json, choice.logprobs);
  WriteFinishReason(json, choice.finish_reason);
  json.EndObject().EndArray();
  if (include_usage) json.Key("usage").Null();
  json.EndObject();
  return json.Take();
}

std::string CompletionDeltaChunk(const ResponseHead& head,
                                 const Choice& choice,
                                 int text_offset,
                                 bool include_usage) {
  JsonWriter json;
  json.BeginObject();
  WriteHead(json, head, "text_completion");
  json.Key("choices")
      .BeginArray()
      .BeginObject()
      .Key("index")
      .Int(choice.index)
      .Key("text")
      .String(choice.text);
  WriteCompletionLogprobs(json, choice.logprobs, text_offset);
  WriteFinishReason(json, choice.finish_reason);
  json.EndObject().EndArray().Key("seed").Uint(head.seed);
  if (include_usage) json.Key("usage").Null();
  json.EndObject();
  return json.Take();
}

std::string UsageChunk(const ResponseHead& head, bool chat, const Usage& usage) {
  JsonWriter json;
  json.BeginObject();
  WriteHead(json, head, chat ? "chat.completion.chunk" : "text_completion");
  json.Key("choices").BeginArray().EndArray();
  WriteUsage(json, usage);
  json.EndObject();
  return json.Take();
}

std::string SseEvent(std::string_view json) { return fmt::format("data: {}\n\n", json); }

namespace {

void WriteModel(JsonWriter& json, const ModelCard& model) {
  json.BeginObject().Key("id").String(model.id).Key("object").String("model").Key("created").Int(
      model.created);
  json.Key("owned_by").String("holmes").Key("max_model_len").Int(model.context_tokens).EndObject();
}

}  // namespace

std::string ModelBody(const ModelCard& model) {
  JsonWriter json;
  WriteModel(json, model);
  return json.Take();
}

std::string ModelListBody(const std::vector<ModelCard>& models) {
  JsonWriter json;
  json.BeginObject().Key("object").String("list").Key("data").BeginArray();
  for (const ModelCard& model : models) WriteModel(json, model);
  json.EndArray().EndObject();
  return json.Take();
}

std::string TokenizeBody(const std::vector<TokenId>& tokens, int context_tokens) {
  JsonWriter json;
  json.BeginObject()
      .Key("count")
      .Int(static_cast<std::int64_t>(tokens.size()))
      .Key("max_model_len")
      .Int(context_tokens)
      .Key("tokens")
      .BeginArray();
  for (const TokenId id : tokens) json.Int(id);
  json.EndArray().EndObject();
  return json.Take();
}

std::string DetokenizeBody(std::string_view text) {
  JsonWriter json;
  json.BeginObject().Key("prompt").String(text).EndObject();
  return json.Take();
}

}  // namespace holmes::api
