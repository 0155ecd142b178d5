#include "api/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace holmes::api {
namespace {

using testing::HasSubstr;

std::string Chat(const std::string& more) {
  return R"({"model": "m", "messages": [{"role": "user", "content": "hi"}])" +
         (more.empty() ? "" : ", " + more) + "}";
}

/// The request is refused, and the error names the field (and the value, where it is given).
void ExpectRefused(const Status& status,
                   const std::string& param,
                   const std::string& in_message = "") {
  EXPECT_TRUE(status.code() == StatusCode::kInvalidArgument ||
              status.code() == StatusCode::kUnimplemented)
      << status.ToString();
  EXPECT_EQ(status.param(), param) << status.ToString();
  EXPECT_THAT(std::string(status.message()), HasSubstr(in_message));
}

TEST(ChatRequestTest, ReadsEveryField) {
  const auto request = ParseChatCompletionRequest(Chat(
      R"("temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "presence_penalty": -1,
         "frequency_penalty": 1.5, "repetition_penalty": 1.1, "seed": 0, "stop": ["a", "b"],
         "max_tokens": 5, "max_completion_tokens": 7, "n": 2, "logit_bias": {"5": -100, "3": 1.5},
         "logprobs": true, "top_logprobs": 3, "stream": true,
         "stream_options": {"include_usage": true}, "user": "u", "stop_token_ids": [9],
         "ignore_eos": true, "min_tokens": 1, "skip_special_tokens": false)"));
  ASSERT_TRUE(request.ok()) << request.status().ToString();
  const GenerationFields& f = request->fields;
  EXPECT_EQ(f.temperature, 0.5);
  EXPECT_EQ(f.top_p, 0.9);
  EXPECT_EQ(f.top_k, 40);
  EXPECT_EQ(f.min_p, 0.05);
  EXPECT_EQ(f.presence_penalty, -1);
  EXPECT_EQ(f.frequency_penalty, 1.5);
  EXPECT_EQ(f.repetition_penalty, 1.1);
  ASSERT_TRUE(f.seed.has_value());
  EXPECT_EQ(*f.seed, 0U);
  EXPECT_EQ(f.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(f.max_tokens, 7) << "the newer name counts";
  EXPECT_EQ(f.n, 2);
  EXPECT_EQ(f.logit_bias, (std::vector<std::pair<TokenId, float>>{{3, 1.5F}, {5, -100.0F}}));
  EXPECT_TRUE(f.logprobs);
  EXPECT_EQ(f.top_logprobs, 3);
  EXPECT_TRUE(f.stream);
  EXPECT_TRUE(f.include_usage);
  EXPECT_EQ(f.stop_token_ids, (std::vector<TokenId>{9}));
  EXPECT_TRUE(f.ignore_eos);
  EXPECT_EQ(f.min_tokens, 1);
  EXPECT_FALSE(f.skip_special_tokens);
  EXPECT_EQ(request->messages.as_list()[0].Find("content")->as_string(), "hi");
}

TEST(ChatRequestTest, NullIsTheSameAsAbsent) {
  const auto request = ParseChatCompletionRequest(
      Chat(R"("temperature": null, "stop": null, "n": null, "tools": null, "seed": null)"));
  ASSERT_TRUE(request.ok()) << request.status().ToString();
  EXPECT_FALSE(request->fields.temperature.has_value());
  EXPECT_FALSE(request->fields.seed.has_value());
  EXPECT_EQ(request->fields.n, 1);
}

TEST(ChatRequestTest, BadValuesNameTheField) {
  struct Case {
    const char* json;
    const char* param;
    const char* in_message;
  };
  const Case cases[] = {
      {R"("temperature": 2.5)", "temperature", "2.5"},
      {R"("temperature": -0.1)", "temperature", "-0.1"},
      {R"("temperature": "hot")", "temperature", "string"},
      {R"("temperature": 1e400)", "temperature", ""},
      {R"("top_p": 0)", "top_p", "0"},
      {R"("top_p": 2)", "top_p", "2"},
      {R"("top_k": 1.5)", "top_k", "1.5"},
      {R"("min_p": 1.5)", "min_p", "1.5"},
      {R"("n": 0)", "n", "0"},
      {R"("n": 1000000)", "n", "1000000"},
      {R"("presence_penalty": 3)", "presence_penalty", "3"},
      {R"("repetition_penalty": 0)", "repetition_penalty", "0"},
      {R"("seed": 1.5)", "seed", "1.5"},
      {R"("max_tokens": 0)", "max_tokens", "0"},
      {R"("max_tokens": 99999999999999999999)", "max_tokens", ""},
      {R"("stop": "")", "stop", "empty"},
      {R"("stop": [1])", "stop", "integer"},
      {R"("stop": ["1","2","3","4","5","6","7","8","9","0","a","b","c","d","e","f","g"])",
       "stop",
       "17"},
      {R"("logit_bias": {"x": 1})", "logit_bias", "'x'"},
      {R"("logit_bias": {"1": 101})", "logit_bias", "101"},
      {R"("logit_bias": {"-1": 1})", "logit_bias", "'-1'"},
      {R"("logit_bias": [1])", "logit_bias", "array"},
      {R"("top_logprobs": 2)", "top_logprobs", "logprobs"},
      {R"("logprobs": true, "top_logprobs": 21)", "top_logprobs", "21"},
      {R"("stream": 1)", "stream", "integer"},
      {R"("stream_options": {"include_usage": true})", "stream_options", "stream"},
      {R"("stream": true, "stream_options": {"usage": true})", "stream_options", "include_usage"},
      {R"("stop_token_ids": [-1])", "stop_token_ids", "-1"},
      {R"("min_tokens": 5, "max_tokens": 2)", "min_tokens", "5"},
      {R"("temprature": 1)", "temprature", "'temperature'"},
      {R"("best": 1)", "best", "nearest"},
  };
  for (const Case& c : cases) {
    ExpectRefused(ParseChatCompletionRequest(Chat(c.json)).status(), c.param, c.in_message);
  }
}

TEST(ChatRequestTest, WhatIsNotThereYetIsRefusedByNameAndNeverIgnored) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("tools": [{"type": "function"}])", "tools"},
      {R"("tool_choice": "required")", "tool_choice"},
      {R"("response_format": {"type": "json_object"})", "response_format"},
      {R"("response_format": {"type": "json_schema", "json_schema": {}})", "response_format"},
      {R"("functions": [{}])", "functions"},
      {R"("echo": true)", "echo"},
      {R"("reasoning_effort": "low")", "reasoning_effort"},
      {R"("modalities": ["audio"])", "modalities"},
      {R"("guided_json": {})", "guided_json"},
  };
  for (const auto& [json, param] : cases) {
    const Status status = ParseChatCompletionRequest(Chat(json)).status();
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << json;
    ExpectRefused(status, param, "not supported");
  }
  EXPECT_TRUE(
      ParseChatCompletionRequest(
          Chat(R"("tools": [], "tool_choice": "none", "response_format": {"type": "text"})"))
          .ok());
}

TEST(ChatRequestTest, MessagesAreCheckedOneByOne) {
  const auto status_of = [](const std::string& messages) {
    return ParseChatCompletionRequest(R"({"messages": )" + messages + "}").status();
  };
  ExpectRefused(ParseChatCompletionRequest("{}").status(), "messages", "missing");
  ExpectRefused(status_of("[]"), "messages", "empty");
  ExpectRefused(status_of("\"hi\""), "messages", "string");
  ExpectRefused(status_of("[1]"), "messages[0]", "integer");
  ExpectRefused(status_of(R"([{"content": "x"}])"), "messages[0].role", "missing");
  ExpectRefused(status_of(R"([{"role": "user"}])"), "messages[0].content", "missing");
  ExpectRefused(status_of(R"([{"role": "user", "content": 5}])"), "messages[0].content", "integer");
  ExpectRefused(status_of(R"([{"role": "user", "content": "x", "contnet": 1}])"),
                "messages[0].contnet",
                "'content'");
  ExpectRefused(
      status_of(R"([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}])"),
      "messages[0].content[0]",
      "image_url");
  const auto parts = ParseChatCompletionRequest(
      R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]})");
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(parts->messages.as_list()[0].Find("content")->as_string(), "ab");
}

TEST(RequestBodyTest, BrokenJsonIsAnError) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "[";
  for (const std::string& body : {std::string(),
                                  std::string("{"),
                                  std::string("[]"),
                                  std::string("null"),
                                  std::string("{} x"),
                                  deep,
                                  std::string("{\"model\": \"\xFF\"}"),
                                  std::string("{\"a\": 1,}"),
                                  std::string("nope")}) {
    EXPECT_EQ(ParseChatCompletionRequest(body).status().code(), StatusCode::kInvalidArgument)
        << body.substr(0, 20);
  }
}

TEST(CompletionRequestTest, EveryKindOfPrompt) {
  const auto prompts = [](const std::string& json) {
    return ParseCompletionRequest(R"({"prompt": )" + json + "}");
  };
  EXPECT_EQ(std::get<std::string>(prompts("\"a\"")->prompts[0]), "a");
  EXPECT_EQ(prompts(R"(["a", "b"])")->prompts.size(), 2U);
  EXPECT_EQ(std::get<std::vector<TokenId>>(prompts("[1, 2]")->prompts[0]),
            (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(prompts("[[1, 2], [3]]")->prompts.size(), 2U);
  EXPECT_EQ(prompts("\"a\"")->fields.max_tokens, 16) << "the specification's default";
  for (const char* bad :
       {"\"\"", "[]", "[\"\"]", "[[]]", "[1, -2]", "[1.5]", "[1, \"a\"]", "5", "[{}]", "null"}) {
    ExpectRefused(prompts(bad).status(), "prompt");
  }
  for (const char* refused : {R"({"prompt": "a", "suffix": "s"})",
                              R"({"prompt": "a", "best_of": 3})",
                              R"({"prompt": "a", "echo": true})"}) {
    EXPECT_EQ(ParseCompletionRequest(refused).status().code(), StatusCode::kUnimplemented)
        << refused;
  }
}

TEST(TokenizeRequestTest, PromptOrMessages) {
  EXPECT_EQ(ParseTokenizeRequest(R"({"prompt": ""})")->prompt, "");
  EXPECT_TRUE(ParseTokenizeRequest(R"({"messages": [{"role": "user", "content": "x"}]})")
                  ->messages.has_value());
  ExpectRefused(ParseTokenizeRequest("{}").status(), "prompt");
  EXPECT_EQ(ParseDetokenizeRequest(R"({"tokens": [1, 2]})")->tokens.size(), 2U);
  ExpectRefused(ParseDetokenizeRequest("{}").status(), "tokens");
}

TEST(ValidateTest, IdsLieInTheVocabulary) {
  const ModelLimits limits{.vocab_size = 10, .context_tokens = 100};
  GenerationFields fields;
  EXPECT_TRUE(ValidateFields(fields, limits).ok());
  fields.logit_bias = {{9, 1.0F}, {10, 1.0F}};
  ExpectRefused(ValidateFields(fields, limits), "logit_bias", "10");
  fields.logit_bias.clear();
  fields.stop_token_ids = {12};
  ExpectRefused(ValidateFields(fields, limits), "stop_token_ids", "12");
}

}  // namespace
}  // namespace holmes::api
