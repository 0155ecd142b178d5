// Conversations, and answers of a server at a URL.
#include "app/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/http_server.h"
#include "net/router.h"
#include "net/sse.h"

namespace holmes::app {
namespace {

using ::testing::HasSubstr;

void Ignore(std::string_view) {}

/// Answers what it was asked, or fails.
class EchoSource final : public AnswerSource {
 public:
  StatusOr<ChatAnswer> Answer(const std::vector<ChatMessage>& messages,
                              const TextCallback& on_text) override {
    seen = messages;
    if (fail) return base::UnavailableError("down");
    on_text(messages.back().content);
    ChatAnswer answer;
    answer.text = messages.back().content;
    return answer;
  }
  void Stop() override {}

  std::vector<ChatMessage> seen;
  bool fail = false;
};

std::string Contents(const std::vector<ChatMessage>& messages) {
  std::string out;
  for (const ChatMessage& one : messages) out += one.role + ":" + one.content + " ";
  return out;
}

TEST(ChatSessionTest, KeepsTheConversation) {
  EchoSource source;
  ChatSession session(source, "be kind");
  ASSERT_TRUE(session.Ask("one", &Ignore).ok());
  ASSERT_TRUE(session.Ask("two", &Ignore).ok());
  EXPECT_EQ(Contents(source.seen), "system:be kind user:one assistant:one user:two ");
  session.Clear();
  ASSERT_TRUE(session.Ask("three", &Ignore).ok());
  EXPECT_EQ(Contents(source.seen), "system:be kind user:three ");
}

TEST(ChatSessionTest, AFailedQuestionLeavesNoTrace) {
  EchoSource source;
  ChatSession session(source, "");
  source.fail = true;
  EXPECT_FALSE(session.Ask("one", &Ignore).ok());
  source.fail = false;
  ASSERT_TRUE(session.Ask("two", &Ignore).ok());
  EXPECT_EQ(Contents(source.seen), "user:two ");
}

/// A server with OpenAI's routes that says what the test wants.
class UrlSourceTest : public ::testing::Test {
 protected:
  void Serve(net::Handler completions, std::string models = R"({"data":[{"id":"m1"}]})") {
    router_.Add("GET",
                "/v1/models",
                [models](net::HttpRequest, const std::shared_ptr<net::ResponseWriter>& writer) {
                  writer->Send(200, {}, models);
                });
    router_.Add("POST", "/v1/chat/completions", completions);
    router_.Add("POST", "/v1/completions", completions);
    auto server = net::HttpServer::Create(
        {}, [this](net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) {
          router_.Handle(std::move(request), std::move(writer));
        });
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
    server_->Start();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }
  std::unique_ptr<AnswerSource> Source() {
    auto source = MakeUrlSource({.url = url(), .api_key = "k", .model = ""}, ChatOptions{});
    EXPECT_TRUE(source.ok()) << source.status().ToString();
    return *std::move(source);
  }
  static net::Handler Stream(std::vector<std::string> events) {
    return [events = std::move(events)](net::HttpRequest,
                                        const std::shared_ptr<net::ResponseWriter>& writer) {
      writer->Start(200, {{"Content-Type", "text/event-stream"}});
      for (const std::string& event : events) writer->Write(net::SseData(event));
      writer->Finish();
    };
  }

  net::Router router_;
  std::unique_ptr<net::HttpServer> server_;
};

TEST_F(UrlSourceTest, StreamsTheAnswer) {
  std::promise<std::pair<std::string, std::string>> asked;
  const net::Handler stream =
      Stream({R"({"choices":[{"delta":{"role":"assistant","content":""}}]})",
              R"({"choices":[{"delta":{"content":"Hel"}}]})",
              R"({"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]})",
              R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}})",
              "[DONE]"});
  Serve([&](net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) {
    asked.set_value({request.body, *request.Find("authorization")});
    stream(std::move(request), std::move(writer));
  });
  std::string streamed;
  const auto answer =
      Source()->Answer({{"user", "hi"}}, [&](std::string_view text) { streamed += text; });
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(answer->text, "Hello");
  EXPECT_EQ(streamed, "Hello");
  EXPECT_EQ(answer->prompt_tokens, 7);
  EXPECT_EQ(answer->completion_tokens, 2);
  const auto [body, key] = asked.get_future().get();
  EXPECT_EQ(key, "Bearer k");
  const auto root = boost::json::parse(body);
  EXPECT_EQ(root.at("model").as_string(), "m1");
  EXPECT_EQ(root.at("messages").at(0).at("content").as_string(), "hi");
}

TEST_F(UrlSourceTest, RefusalsBecomeTheServersOwnWords) {
  Serve([](net::HttpRequest, const std::shared_ptr<net::ResponseWriter>& writer) {
    writer->Send(400, {}, R"({"error":{"message":"too long"}})");
  });
  const Status status = Source()->Answer({{"user", "hi"}}, &Ignore).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("too long"));
}

TEST_F(UrlSourceTest, AStreamThatIsNotOpenAisIsAnError) {
  for (const char* event : {"not json", "[1]", R"({"error":{"message":"went wrong"}})"}) {
    router_ = net::Router();
    Serve(Stream({event}));
    EXPECT_FALSE(Source()->Answer({{"user", "hi"}}, &Ignore).ok()) << event;
  }
}

TEST_F(UrlSourceTest, AServerWithoutModelsOrNoServerIsAnError) {
  Serve(Stream({}), R"({"data":[]})");
  EXPECT_EQ(MakeUrlSource({.url = url() + "/v1/", .api_key = "", .model = ""}, {}).status().code(),
            StatusCode::kNotFound);
  const std::string gone = url();
  server_.reset();
  EXPECT_EQ(MakeUrlSource({.url = gone, .api_key = "", .model = ""}, {}).status().code(),
            StatusCode::kUnavailable);
  EXPECT_FALSE(MakeUrlSource({.url = "nonsense", .api_key = "", .model = ""}, {}).ok());
}

TEST_F(UrlSourceTest, StopEndsTheAnswerAndKeepsWhatThereWas) {
  std::shared_ptr<net::ResponseWriter> held;
  Serve([&](net::HttpRequest, std::shared_ptr<net::ResponseWriter> writer) {
    writer->Start(200, {{"Content-Type", "text/event-stream"}});
    writer->Write(net::SseData(R"({"choices":[{"delta":{"content":"Once"}}]})"));
    held = std::move(writer);  // never finishes by itself
  });
  const auto source = Source();
  const auto answer = source->Answer({{"user", "hi"}}, [&](std::string_view) { source->Stop(); });
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_TRUE(answer->stopped);
  EXPECT_EQ(answer->text, "Once");
}

}  // namespace
}  // namespace holmes::app
