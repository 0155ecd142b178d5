#include "net/http_client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "net/http_server.h"
#include "net/router.h"

namespace holmes::net {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class HttpClientTest : public testing::Test {
 protected:
  void SetUp() override {
    router_.Add("POST", "/echo", [](HttpRequest request, auto writer) {
      const std::string* type = request.Find("content-type");
      writer->Send(200, {{"X-Type", type == nullptr ? "" : *type}}, request.query + request.body);
    });
    router_.Add("GET", "/events", [](HttpRequest, auto writer) {
      writer->Start(200, {{"Content-Type", "text/event-stream"}});
      for (int i = 0; i < 3; ++i) writer->Write(SseData(fmt::format("{}", i)));
      writer->Finish();
    });
    router_.Add("GET", "/endless", [this](HttpRequest, auto writer) {
      writer->OnDisconnect([this] { gone_.set_value(); });
      writer->Start(200, {{"Content-Type", "text/event-stream"}});
      writer->Write(SseData("first"));
      held_ = writer;
    });
    router_.Add("GET", "/cut", [](HttpRequest, auto writer) {
      writer->Start(200, {});
      writer->Write("half");
    });
    auto server = HttpServer::Create({}, [this](HttpRequest request, auto writer) {
      router_.Handle(std::move(request), std::move(writer));
    });
    ASSERT_TRUE(server.ok());
    server_ = *std::move(server);
    server_->Start();
  }
  std::string Url(std::string_view path) {
    return fmt::format("http://127.0.0.1:{}{}", server_->port(), path);
  }
  bool WaitGone() {
    return gone_.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  }

  Router router_;
  std::promise<void> gone_;
  std::shared_ptr<ResponseWriter> held_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpClientTest, PostsAndReads) {
  ClientRequest request{
      .method = "POST", .url = Url("/echo?a=b"), .headers = {{"Content-Type", "application/json"}}};
  request.body = std::string(3'000'000, 'x');
  const auto response = Fetch(request);
  ASSERT_TRUE(response.ok()) << response.status().ToString();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(*FindHeader(response->headers, "x-type"), "application/json");
  EXPECT_EQ(response->body, "a=b" + request.body);
  request.max_body_bytes = 1000;
  EXPECT_EQ(Fetch(request).status().code(), StatusCode::kResourceExhausted);
}

TEST_F(HttpClientTest, ReadsEvents) {
  std::vector<std::string> events;
  const auto response = FetchEvents({.url = Url("/events")}, [&](SseEvent&& event) {
    events.push_back(event.data);
    return true;
  });
  ASSERT_TRUE(response.ok()) << response.status().ToString();
  EXPECT_THAT(events, ElementsAre("0", "1", "2"));
}

TEST_F(HttpClientTest, ErrorsKeepTheirBody) {
  const auto response = FetchEvents({.url = Url("/nothing")}, [](SseEvent&&) { return true; });
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 404);
  EXPECT_THAT(response->body, HasSubstr("nothing at GET /nothing"));
}

TEST_F(HttpClientTest, TheCallbackEndsTheCall) {
  const auto response = FetchEvents({.url = Url("/endless")}, [](SseEvent&&) { return false; });
  EXPECT_EQ(response.status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(WaitGone());
}

TEST_F(HttpClientTest, AnotherThreadEndsTheCall) {
  CancelSource cancel;
  std::promise<void> first;
  std::thread canceller([&] {
    first.get_future().wait();
    cancel.Cancel();
  });
  const auto response = FetchEvents(
      {.url = Url("/endless")},
      [&](SseEvent&&) {
        first.set_value();
        return true;
      },
      &cancel);
  EXPECT_EQ(response.status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(WaitGone());
  canceller.join();
  EXPECT_EQ(Fetch({.url = Url("/events")}, {}, &cancel).status().code(), StatusCode::kCancelled);
}

TEST_F(HttpClientTest, TellsWhatWentWrong) {
  EXPECT_EQ(Fetch({.url = Url("/cut")}).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(Fetch({.url = Url("/endless"), .idle_timeout = std::chrono::milliseconds(20)})
                .status()
                .code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Fetch({.url = "ftp://x/"}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Fetch({.url = "not a url"}).status().code(), StatusCode::kInvalidArgument);
  const std::string url = Url("/echo");
  server_->Stop(std::chrono::steady_clock::now());
  const auto refused = Fetch({.url = url});
  EXPECT_EQ(refused.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("127.0.0.1"));
}

}  // namespace
}  // namespace holmes::net
