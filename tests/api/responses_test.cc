#include "api/responses.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <limits>
#include <random>
#include <string>

#include "api/errors.h"
#include "api/json_writer.h"
#include "text/utf8.h"

namespace holmes::api {
namespace {

namespace json = boost::json;

TEST(JsonWriterTest, StringsOfAnyBytesAreValidJson) {
  std::mt19937 rng(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (std::size_t i = rng() % 30; i > 0; --i)
      bytes.push_back(static_cast<char>(rng() % 3 == 0 ? rng() % 256 : rng() % 128));
    std::string out;
    AppendJsonString(bytes, out);
    json::error_code error;
    const json::value parsed = json::parse(out, error);
    ASSERT_FALSE(error) << out;
    EXPECT_EQ(std::string(parsed.as_string()), text::ReplaceInvalidUtf8(bytes));
  }
}

TEST(JsonWriterTest, NumbersThatJsonLacksBecomeNull) {
  JsonWriter writer;
  writer.BeginArray()
      .Number(std::numeric_limits<double>::quiet_NaN())
      .Number(-std::numeric_limits<double>::infinity())
      .Number(0.5)
      .Int(-3)
      .EndArray();
  EXPECT_EQ(writer.Take(), "[null,null,0.5,-3]");
}

const ResponseHead kHead{.id = "chatcmpl-1", .model = "m", .created = 5, .seed = 9};

TEST(ResponsesTest, ChatCompletionHasOpenAisShape) {
  Choice choice{
      .index = 1,
      .text = "hi\n\"there\"",
      .logprobs = std::vector<TokenLogprob>{{"h", -0.5F, {{"h", -0.5F}, {"\xFF", -2.0F}}}},
      .finish_reason = "stop"};
  const json::value body = json::parse(ChatCompletionBody(
      kHead, {choice}, {.prompt_tokens = 3, .cached_tokens = 1, .completion_tokens = 2}));
  EXPECT_EQ(body.at("object").as_string(), "chat.completion");
  EXPECT_EQ(body.at("seed").to_number<int>(), 9);
  const json::value& first = body.at("choices").at(0);
  EXPECT_EQ(first.at("message").at("role").as_string(), "assistant");
  EXPECT_EQ(first.at("message").at("content").as_string(), choice.text);
  EXPECT_EQ(first.at("finish_reason").as_string(), "stop");
  const json::value& token = first.at("logprobs").at("content").at(0);
  EXPECT_EQ(token.at("bytes").at(0).to_number<int>(), 'h');
  EXPECT_EQ(token.at("top_logprobs").at(1).at("bytes").at(0).to_number<int>(), 255);
  EXPECT_EQ(body.at("usage").at("total_tokens").to_number<int>(), 5);
  EXPECT_EQ(body.at("usage").at("prompt_tokens_details").at("cached_tokens").to_number<int>(), 1);
}

TEST(ResponsesTest, StreamedChunks) {
  const json::value role = json::parse(ChatRoleChunk(kHead, 0, true));
  EXPECT_EQ(role.at("choices").at(0).at("delta").at("content").as_string(), "");
  EXPECT_EQ(role.at("choices").at(0).at("delta").at("role").as_string(), "assistant");
  EXPECT_TRUE(role.at("usage").is_null());
  const json::value delta = json::parse(ChatDeltaChunk(kHead, {.index = 0, .text = "x"}, false));
  EXPECT_EQ(delta.at("choices").at(0).at("delta").at("content").as_string(), "x");
  EXPECT_TRUE(delta.at("choices").at(0).at("finish_reason").is_null());
  EXPECT_FALSE(delta.as_object().contains("usage"));
  const json::value last =
      json::parse(ChatDeltaChunk(kHead, {.index = 0, .finish_reason = "length"}, false));
  EXPECT_FALSE(last.at("choices").at(0).at("delta").as_object().contains("content"))
      << "no empty or null content after the first chunk";
  EXPECT_EQ(last.at("choices").at(0).at("finish_reason").as_string(), "length");
  const json::value usage =
      json::parse(UsageChunk(kHead, true, {.prompt_tokens = 1, .completion_tokens = 1}));
  EXPECT_TRUE(usage.at("choices").as_array().empty());
  EXPECT_EQ(SseEvent("{}"), "data: {}\n\n");
}

TEST(ResponsesTest, CompletionLogprobsAreParallelArrays) {
  Choice choice{.text = "é!",
                .logprobs =
                    std::vector<TokenLogprob>{
                        {"\xC3", -1.0F, {}}, {"\xA9", -1.0F, {}}, {"!", -2.0F, {{"!", -2.0F}}}},
                .finish_reason = "length"};
  const json::value body = json::parse(CompletionBody(kHead, {choice}, {}));
  const json::value& logprobs = body.at("choices").at(0).at("logprobs");
  EXPECT_EQ(json::serialize(logprobs.at("text_offset")), "[0,0,1]");
  EXPECT_EQ(logprobs.at("tokens").as_array().size(), 3U);
}

TEST(ErrorsTest, OneTableForStatusAndHttp) {
  const std::pair<Status, int> cases[] = {{base::InvalidArgumentError("x"), 400},
                                          {base::UnimplementedError("x"), 400},
                                          {base::NotFoundError("x"), 404},
                                          {base::ResourceExhaustedError("x"), 429},
                                          {base::UnavailableError("x"), 503},
                                          {base::InternalError("x"), 500},
                                          {base::DeadlineExceededError("x"), 504}};
  for (const auto& [status, http] : cases)
    EXPECT_EQ(ToErrorResponse(status).http_status, http) << status.ToString();
  EXPECT_GT(ToErrorResponse(base::ResourceExhaustedError("x")).retry_after_seconds, 0);
  const json::value body =
      json::parse(ToErrorResponse(base::InvalidArgumentError("bad \"n\"").WithParam("n")).body);
  EXPECT_EQ(body.at("error").at("param").as_string(), "n");
  EXPECT_EQ(body.at("error").at("type").as_string(), "invalid_request_error");
  EXPECT_EQ(body.at("error").at("message").as_string(), "bad \"n\"");
  EXPECT_TRUE(json::parse(HttpError(404, "no such path").body).at("error").at("param").is_null());
}

}  // namespace
}  // namespace holmes::api
