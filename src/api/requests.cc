#include "api/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "api/json_object.h"

namespace holmes::api {
namespace {

namespace json = boost::json;
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 30;
constexpr std::size_t kMaxStops = 16;
constexpr std::size_t kMaxStopBytes = 4096;
constexpr std::size_t kMaxPrompts = 1024;

StatusOr<json::object> ParseObject(std::string_view body) {
  HOLMES_ASSIGN_OR_RETURN(json::value value, ParseJson(body));
  if (!value.is_object())
    return base::InvalidArgumentError(
        fmt::format("the body is of JSON type {}, an object is expected", KindName(value)));
  return std::move(value.get_object());
}

void ReadStop(ObjectReader& reader, GenerationFields& out) {
  const json::value* value = reader.Get("stop");
  if (value == nullptr) return;
  if (value->is_string()) {
    out.stop.emplace_back(value->get_string());
  } else if (value->is_array()) {
    for (const json::value& item : value->get_array()) {
      if (!item.is_string())
        return reader.Fail(
            "stop", fmt::format("holds a value of type {}, strings are expected", KindName(item)));
      out.stop.emplace_back(item.get_string());
    }
  } else {
    return reader.FailKind("stop", *value, "a string or an array of strings");
  }
  if (out.stop.size() > kMaxStops)
    return reader.Fail(
        "stop",
        fmt::format("holds {} strings, at most {} are allowed", out.stop.size(), kMaxStops));
  for (const std::string& stop : out.stop) {
    if (stop.empty()) return reader.Fail("stop", "holds an empty string");
    if (stop.size() > kMaxStopBytes)
      return reader.Fail(
          "stop",
          fmt::format(
              "holds a string of {} bytes, at most {} are allowed", stop.size(), kMaxStopBytes));
  }
}

void ReadLogitBias(ObjectReader& reader, GenerationFields& out) {
  const json::value* value = reader.Get("logit_bias");
  if (value == nullptr) return;
  if (!value->is_object())
    return reader.FailKind("logit_bias", *value, "an object of token ids and numbers");
  for (const auto& item : value->get_object()) {
    TokenId id = -1;
    const std::string_view key = item.key();
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0)
      return reader.Fail("logit_bias",
                         fmt::format("has the key '{}', token ids are integers from 0", key));
    const double bias = item.value().is_number() ? item.value().to_number<double>()
                                                 : std::numeric_limits<double>::quiet_NaN();
    if (!(bias >= -100 && bias <= 100))
      return reader.Fail(
          "logit_bias",
          fmt::format("gives token {} the value {}, a number from -100 to 100 is expected",
                      id,
                      json::serialize(item.value())));
    out.logit_bias.emplace_back(id, static_cast<float>(bias));
  }
  std::sort(out.logit_bias.begin(), out.logit_bias.end());
}

void ReadStream(ObjectReader& reader, GenerationFields& out) {
  out.stream = reader.Bool("stream").value_or(false);
  const json::value* options = reader.Get("stream_options");
  if (options == nullptr) return;
  if (!options->is_object()) return reader.FailKind("stream_options", *options, "an object");
  if (!out.stream) return reader.Fail("stream_options", "is allowed only with 'stream': true");
  ObjectReader inner(options->get_object(), "stream_options.");
  out.include_usage = inner.Bool("include_usage").value_or(false);
  inner.Refuse("continuous_usage_stats",
               [](const json::value& v) { return v.is_bool() && !v.get_bool(); });
  const Status status = inner.Finish();
  if (!status.ok()) reader.Fail("stream_options", std::string(status.message()));
}

bool IsFalse(const json::value& v) { return v.is_bool() && !v.get_bool(); }

void ReadGeneration(ObjectReader& reader, GenerationFields& out) {
  out.temperature = reader.Number("temperature", 0, 2);
  out.top_p = reader.Number("top_p", 0, 1, true);
  out.min_p = reader.Number("min_p", 0, 1);
  out.presence_penalty = reader.Number("presence_penalty", -2, 2);
  out.frequency_penalty = reader.Number("frequency_penalty", -2, 2);
  out.repetition_penalty = reader.Number("repetition_penalty", 0, 10, true);
  if (const auto k = reader.Integer("top_k", -1, std::numeric_limits<int>::max()))
    out.top_k = static_cast<int>(std::max<std::int64_t>(0, *k));
  if (const json::value* seed = reader.Get("seed"); seed != nullptr && seed->is_uint64()) {
    out.seed = seed->get_uint64();
  } else if (const auto value = reader.Integer("seed",
                                               std::numeric_limits<std::int64_t>::min(),
                                               std::numeric_limits<std::int64_t>::max())) {
    out.seed = static_cast<std::uint64_t>(*value);
  }
  out.min_tokens = static_cast<int>(reader.Integer("min_tokens", 0, kMaxTokens).value_or(0));
  out.n = static_cast<int>(reader.Integer("n", 1, 128).value_or(1));
  ReadLogitBias(reader, out);
  ReadStop(reader, out);
  out.stop_token_ids = reader.Ids("stop_token_ids");
  out.ignore_eos = reader.Bool("ignore_eos").value_or(false);
  out.skip_special_tokens = reader.Bool("skip_special_tokens").value_or(true);
  ReadStream(reader, out);
  out.priority = static_cast<int>(reader.Integer("priority", -1000, 1000).value_or(0));
  out.cache_salt = reader.String("cache_salt").value_or("");
  reader.Accept("user");
  reader.Accept("safety_identifier");
}

void ReadMaxTokens(ObjectReader& reader, GenerationFields& out) {
  const auto old_name = reader.Integer("max_tokens", 1, kMaxTokens);
  const auto new_name = reader.Integer("max_completion_tokens", 1, kMaxTokens);
  if (new_name) {
    out.max_tokens = static_cast<int>(*new_name);
  } else if (old_name) {
    out.max_tokens = static_cast<int>(*old_name);
  }
  if (out.max_tokens && out.min_tokens > *out.max_tokens)
    reader.Fail("min_tokens",
                fmt::format("is {}, more than max_tokens = {}", out.min_tokens, *out.max_tokens));
}

/// A message's content as one text: a string, or text parts joined.
StatusOr<text::Value> ContentOf(const json::value& content, const std::string& field) {
  if (content.is_null()) return text::Value();
  if (content.is_string()) return text::Value(std::string(content.get_string()));
  if (!content.is_array())
    return base::InvalidArgumentError(
               fmt::format("'{}' is of type {}, a string or an array of parts is expected",
                           field,
                           KindName(content)))
        .WithParam(field);
  std::string joined;
  for (std::size_t i = 0; i < content.get_array().size(); ++i) {
    const json::value& part = content.get_array()[i];
    const json::value* type = part.is_object() ? part.get_object().if_contains("type") : nullptr;
    const json::value* text = part.is_object() ? part.get_object().if_contains("text") : nullptr;
    const std::string at = fmt::format("{}[{}]", field, i);
    if (type != nullptr && type->is_string() && type->get_string() != "text") {
      return base::UnimplementedError(
                 fmt::format("'{}' is a part of type '{}'; only text is supported",
                             at,
                             std::string_view(type->get_string())))
          .WithParam(at);
    }
    if (text == nullptr || !text->is_string())
      return base::InvalidArgumentError(
                 fmt::format("'{}' is not a text part with a string 'text'", at))
          .WithParam(at);
    joined += text->get_string();
  }
  return text::Value(std::move(joined));
}

StatusOr<text::Value> MessageOf(const json::value& message, const std::string& field) {
  if (!message.is_object())
    return base::InvalidArgumentError(
               fmt::format("'{}' is of type {}, an object is expected", field, KindName(message)))
        .WithParam(field);
  ObjectReader reader(message.get_object(), field + ".");
  const auto role = reader.String("role");
  const json::value* content = reader.Get("content");
  for (const char* name : {"name",
                           "tool_calls",
                           "tool_call_id",
                           "refusal",
                           "reasoning_content",
                           "annotations",
                           "audio",
                           "function_call"})
    reader.Accept(name);
  if (!role && reader.ok()) reader.Fail("role", "is missing");
  const bool may_lack_content = role == "assistant" && message.get_object().contains("tool_calls");
  if (content == nullptr && !may_lack_content && reader.ok()) reader.Fail("content", "is missing");
  HOLMES_RETURN_IF_ERROR(reader.Finish());
  text::Dict out;
  for (const auto& item : message.get_object()) {
    if (item.key() != "content") {
      if (!item.value().is_null())
        out.emplace_back(std::string(item.key()), ToTemplateValue(item.value()));
      continue;
    }
    HOLMES_ASSIGN_OR_RETURN(text::Value value, ContentOf(item.value(), field + ".content"));
    out.emplace_back("content", std::move(value));
  }
  return text::Value(std::move(out));
}

StatusOr<text::Value> MessagesOf(const json::value* messages) {
  const auto bad = [](std::string message) {
    return base::InvalidArgumentError("'messages' " + message).WithParam("messages");
  };
  if (messages == nullptr) return bad("is missing");
  if (!messages->is_array())
    return bad(fmt::format("is of type {}, an array is expected", KindName(*messages)));
  if (messages->get_array().empty()) return bad("is empty");
  text::List out;
  for (std::size_t i = 0; i < messages->get_array().size(); ++i) {
    HOLMES_ASSIGN_OR_RETURN(text::Value message,
                            MessageOf(messages->get_array()[i], fmt::format("messages[{}]", i)));
    out.push_back(std::move(message));
  }
  return text::Value(std::move(out));
}

/// What OpenAI's chat API has and Holmes does not do yet. A value that asks for nothing passes.
void RefuseUnsupportedChat(ObjectReader& reader) {
  const auto empty_array = [](const json::value& v) {
    return v.is_array() && v.get_array().empty();
  };
  reader.Refuse("tools", empty_array);
  reader.Refuse("functions", empty_array);
  reader.Refuse("tool_choice", [](const json::value& v) {
    return v.is_string() && (v.get_string() == "none" || v.get_string() == "auto");
  });
  reader.Refuse("function_call", [](const json::value& v) {
    return v.is_string() && (v.get_string() == "none" || v.get_string() == "auto");
  });
  reader.Refuse("parallel_tool_calls", [](const json::value& v) { return v.is_bool(); });
  reader.Refuse("response_format", [](const json::value& v) {
    const json::value* type = v.is_object() ? v.get_object().if_contains("type") : nullptr;
    return type != nullptr && type->is_string() && type->get_string() == "text" &&
           v.get_object().size() == 1;
  });
  reader.Refuse("modalities", [](const json::value& v) {
    return v.is_array() && v.get_array().size() == 1 && v.get_array()[0] == "text";
  });
  const auto never = [](const json::value&) { return false; };
  for (const char* name : {"audio",
                           "prediction",
                           "web_search_options",
                           "reasoning_effort",
                           "verbosity",
                           "chat_template",
                           "guided_json",
                           "guided_regex",
                           "guided_grammar",
                           "guided_choice",
                           "structured_outputs",
                           "documents",
                           "best_of",
                           "prompt_logprobs"}) {
    reader.Refuse(name, never);
  }
  reader.Refuse("echo", IsFalse);
  reader.Refuse("service_tier", [](const json::value& v) {
    return v.is_string() && (v.get_string() == "auto" || v.get_string() == "default");
  });
  reader.Refuse("store", IsFalse);
  reader.Accept("metadata");
  reader.Accept("prompt_cache_key");
}

void ReadChatLogprobs(ObjectReader& reader, GenerationFields& out) {
  out.logprobs = reader.Bool("logprobs").value_or(false);
  const auto top = reader.Integer("top_logprobs", 0, 20);
  if (top && !out.logprobs) reader.Fail("top_logprobs", "is allowed only with 'logprobs': true");
  out.top_logprobs = static_cast<int>(top.value_or(0));
}

/// An array of token ids, if every element is a number.
StatusOr<std::vector<TokenId>> PromptIds(const json::array& array) {
  std::vector<TokenId> ids;
  for (const json::value& item : array) {
    json::error_code error;
    const auto id = item.is_number() ? item.to_number<TokenId>(error) : -1;
    if (!item.is_number() || error || id < 0)
      return base::InvalidArgumentError(
                 fmt::format("'prompt' holds {}, token ids are integers from 0",
                             json::serialize(item)))
          .WithParam("prompt");
    ids.push_back(id);
  }
  return ids;
}

StatusOr<std::vector<Prompt>> PromptsOf(const json::value* prompt) {
  const auto bad = [](std::string message) {
    return base::InvalidArgumentError("'prompt' " + message).WithParam("prompt");
  };
  if (prompt == nullptr) return bad("is missing");
  std::vector<Prompt> out;
  if (prompt->is_string()) {
    out.emplace_back(std::string(prompt->get_string()));
  } else if (!prompt->is_array()) {
    return bad(fmt::format(
        "is of type {}, a string, an array of strings or arrays of token ids are expected",
        KindName(*prompt)));
  } else if (!prompt->get_array().empty() && prompt->get_array()[0].is_number()) {
    HOLMES_ASSIGN_OR_RETURN(std::vector<TokenId> ids, PromptIds(prompt->get_array()));
    out.emplace_back(std::move(ids));
  } else {
    if (prompt->get_array().size() > kMaxPrompts)
      return bad(fmt::format(
          "holds {} prompts, at most {} are allowed", prompt->get_array().size(), kMaxPrompts));
    for (const json::value& item : prompt->get_array()) {
      if (item.is_string()) {
        out.emplace_back(std::string(item.get_string()));
      } else if (item.is_array()) {
        HOLMES_ASSIGN_OR_RETURN(std::vector<TokenId> ids, PromptIds(item.get_array()));
        out.emplace_back(std::move(ids));
      } else {
        return bad(
            fmt::format("holds a value of type {}, strings or arrays of token ids are expected",
                        KindName(item)));
      }
    }
  }
  if (out.empty()) return bad("is empty");
  for (const Prompt& p : out) {
    if (std::visit([](const auto& content) { return content.empty(); }, p))
      return bad("holds an empty prompt");
  }
  return out;
}

}  // namespace

StatusOr<ChatCompletionRequest> ParseChatCompletionRequest(std::string_view body) {
  HOLMES_ASSIGN_OR_RETURN(const json::object object, ParseObject(body));
  ObjectReader reader(object, "");
  ChatCompletionRequest out;
  out.model = reader.String("model").value_or("");
  const json::value* messages = reader.Get("messages");
  ReadGeneration(reader, out.fields);
  ReadMaxTokens(reader, out.fields);
  ReadChatLogprobs(reader, out.fields);
  out.add_generation_prompt = reader.Bool("add_generation_prompt").value_or(true);
  if (const json::value* kwargs = reader.Get("chat_template_kwargs")) {
    if (kwargs->is_object()) {
      out.chat_template_kwargs = ToTemplateValue(*kwargs);
    } else {
      reader.FailKind("chat_template_kwargs", *kwargs, "an object");
    }
  }
  RefuseUnsupportedChat(reader);
  HOLMES_RETURN_IF_ERROR(reader.Finish());
  HOLMES_ASSIGN_OR_RETURN(out.messages, MessagesOf(messages));
  return out;
}

StatusOr<CompletionRequest> ParseCompletionRequest(std::string_view body) {
  HOLMES_ASSIGN_OR_RETURN(const json::object object, ParseObject(body));
  ObjectReader reader(object, "");
  CompletionRequest out;
  out.model = reader.String("model").value_or("");
  const json::value* prompt = reader.Get("prompt");
  ReadGeneration(reader, out.fields);
  ReadMaxTokens(reader, out.fields);
  if (!out.fields.max_tokens)
    out.fields.max_tokens = std::max(16, out.fields.min_tokens);  // the specification's default
  if (const auto logprobs = reader.Integer("logprobs", 0, 20)) {
    out.fields.logprobs = true;
    out.fields.top_logprobs = static_cast<int>(*logprobs);
  }
  reader.Refuse("echo", IsFalse);
  reader.Refuse("suffix",
                [](const json::value& v) { return v.is_string() && v.get_string().empty(); });
  reader.Refuse("best_of", [&](const json::value& v) {
    return v.is_int64() && v.get_int64() == out.fields.n;
  });
  const auto never = [](const json::value&) { return false; };
  for (const char* name : {"response_format",
                           "guided_json",
                           "guided_regex",
                           "guided_grammar",
                           "guided_choice",
                           "structured_outputs",
                           "prompt_logprobs",
                           "prompt_embeds"})
    reader.Refuse(name, never);
  HOLMES_RETURN_IF_ERROR(reader.Finish());
  HOLMES_ASSIGN_OR_RETURN(out.prompts, PromptsOf(prompt));
  return out;
}

StatusOr<TokenizeRequest> ParseTokenizeRequest(std::string_view body) {
  HOLMES_ASSIGN_OR_RETURN(const json::object object, ParseObject(body));
  ObjectReader reader(object, "");
  TokenizeRequest out;
  out.model = reader.String("model").value_or("");
  const auto prompt = reader.String("prompt");
  const json::value* messages = reader.Get("messages");
  out.add_generation_prompt = reader.Bool("add_generation_prompt").value_or(true);
  out.add_special_tokens = reader.Bool("add_special_tokens").value_or(true);
  if (!prompt && messages == nullptr && reader.ok())
    reader.Fail("prompt", "is missing ('messages' may stand for it)");
  HOLMES_RETURN_IF_ERROR(reader.Finish());
  out.prompt = prompt.value_or("");
  if (messages != nullptr) {
    HOLMES_ASSIGN_OR_RETURN(out.messages, MessagesOf(messages));
  }
  return out;
}

StatusOr<DetokenizeRequest> ParseDetokenizeRequest(std::string_view body) {
  HOLMES_ASSIGN_OR_RETURN(const json::object object, ParseObject(body));
  ObjectReader reader(object, "");
  DetokenizeRequest out;
  out.model = reader.String("model").value_or("");
  if (reader.Get("tokens") == nullptr) reader.Fail("tokens", "is missing");
  out.tokens = reader.Ids("tokens");
  HOLMES_RETURN_IF_ERROR(reader.Finish());
  return out;
}

Status ValidateIds(const std::vector<TokenId>& ids,
                   const ModelLimits& limits,
                   std::string_view param) {
  for (const TokenId id : ids) {
    if (id < 0 || id >= limits.vocab_size) {
      return base::InvalidArgumentError(
                 fmt::format("'{}' holds the token id {}, the model's ids are 0 to {}",
                             param,
                             id,
                             limits.vocab_size - 1))
          .WithParam(std::string(param));
    }
  }
  return OkStatus();
}

Status ValidateFields(const GenerationFields& fields, const ModelLimits& limits) {
  HOLMES_RETURN_IF_ERROR(ValidateIds(fields.stop_token_ids, limits, "stop_token_ids"));
  std::vector<TokenId> biased;
  for (const auto& [id, bias] : fields.logit_bias) biased.push_back(id);
  return ValidateIds(biased, limits, "logit_bias");
}

}  // namespace holmes::api
