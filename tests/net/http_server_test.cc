#include "net/http_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <mutex>
#include <string>
#include <thread>

#include "net/raw_client.h"
#include "net/router.h"

namespace holmes::net {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace std::chrono_literals;
using namespace std::string_literals;

constexpr auto kPatience = 20s;

/// A server with a few routes and hooks into what its handlers do.
class HttpServerTest : public testing::Test {
 protected:
  void StartServer(HttpServerOptions options = {}) {
    router_.Add("POST", "/echo", [](HttpRequest request, auto writer) {
      writer->Send(200, {{"Content-Type", "text/plain"}}, request.body);
    });
    router_.Add("GET", "/hello", [](HttpRequest, auto writer) { writer->Send(200, {}, "hello"); });
    router_.Add("GET", "/items/{id}", [](HttpRequest request, auto writer) {
      writer->Send(200, {}, fmt::format("[{}]", request.path_param));
    });
    router_.Add("GET", "/stream", [](HttpRequest, auto writer) {
      writer->Start(200, {{"Content-Type", "text/event-stream"}});
      writer->Write("data: 1\n\n");
      writer->Write("data: 2\n\n");
      writer->Finish();
    });
    router_.Add("POST", "/held", [this](HttpRequest, auto writer) {
      writer->OnDisconnect([this] { gone_.set_value(); });
      held_.set_value(std::move(writer));
    });
    router_.Add("GET", "/dropped", [](HttpRequest, auto) {});
    router_.Add("GET", "/forged", [](HttpRequest, auto writer) {
      writer->Send(200, {{"X-Good", "yes"}, {"X-Bad", "a\r\nX-Forged: b"}}, "");
    });
    auto server = HttpServer::Create(std::move(options), [this](HttpRequest request, auto writer) {
      router_.Handle(std::move(request), std::move(writer));
    });
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
    server_->Start();
  }

  std::string Ask(const std::string& request) {
    return RawClient(server_->port()).Exchange(request);
  }

  /// The writer of the request that waits at /held.
  std::shared_ptr<ResponseWriter> TakeHeld() {
    auto future = held_.get_future();
    EXPECT_EQ(future.wait_for(kPatience), std::future_status::ready);
    return future.get();
  }
  bool WaitGone() { return gone_.get_future().wait_for(kPatience) == std::future_status::ready; }

  Router router_;
  std::promise<std::shared_ptr<ResponseWriter>> held_;
  std::promise<void> gone_;  // setting it twice throws, so a second call fails the test
  std::unique_ptr<HttpServer> server_;
};

const std::string kHeldRequest = "POST /held HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi";

TEST_F(HttpServerTest, AnswersAndKeepsAlive) {
  StartServer();
  RawClient client(server_->port());
  for (int i = 0; i < 3; ++i) {
    client.SendBytes("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::string answer = client.ReadAnswer();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, EndsWith("\r\n\r\nhello"));
  }
  EXPECT_EQ(server_->Stats().connections_accepted, 1U);
}

TEST_F(HttpServerTest, ReadsRequestsCutAtEveryByte) {
  StartServer();
  const std::string plain = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab\r\nc";
  const std::string chunked =
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
      "chunked\r\n\r\n2;x=y\r\nab\r\n3\r\n\r\nc\r\n0\r\nT: 1\r\n\r\n";
  RawClient client(server_->port());
  for (const std::string& request : {plain, chunked}) {
    for (std::size_t cut = 0; cut <= request.size(); ++cut) {
      client.SendBytes(request.substr(0, cut));
      client.SendBytes(request.substr(cut));
      ASSERT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\nab\r\nc")) << "cut at " << cut;
    }
    for (const char c : request) client.SendBytes(std::string(1, c));
    ASSERT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\nab\r\nc"));
  }
  const std::string empty =
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  for (std::size_t cut = 1; cut <= 5; ++cut) {
    client.SendBytes(empty.substr(0, empty.size() - cut));
    for (const char c : empty.substr(empty.size() - cut)) client.SendBytes(std::string(1, c));
    ASSERT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\n")) << "cut " << cut << " before the end";
  }
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  StartServer();
  std::string requests;
  for (int i = 0; i < 50; ++i)
    requests += fmt::format("GET /items/{} HTTP/1.1\r\nHost: x\r\n\r\n", i);
  RawClient client(server_->port());
  client.SendBytes(requests);
  for (int i = 0; i < 50; ++i) EXPECT_THAT(client.ReadAnswer(), EndsWith(fmt::format("[{}]", i)));
}

TEST_F(HttpServerTest, PipelinedRequestsWaitForTheAnswerBeforeThem) {
  StartServer();
  RawClient client(server_->port());
  client.SendBytes(kHeldRequest + "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  TakeHeld()->Send(200, {}, "first");
  EXPECT_THAT(client.ReadAnswer(), EndsWith("first"));
  EXPECT_THAT(client.ReadAnswer(), EndsWith("hello"));
}

TEST_F(HttpServerTest, StreamsChunks) {
  StartServer();
  const std::string answer = Ask("GET /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"));
}

TEST_F(HttpServerTest, SpeaksHttp10) {
  StartServer();
  const std::string whole = Ask("GET /hello HTTP/1.0\r\n\r\n");
  EXPECT_THAT(whole, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(whole, EndsWith("\r\n\r\nhello"));
  const std::string streamed = Ask("GET /stream HTTP/1.0\r\n\r\n");
  EXPECT_THAT(streamed, Not(HasSubstr("chunked")));
  EXPECT_THAT(streamed, EndsWith("\r\n\r\ndata: 1\n\ndata: 2\n\n"));
  RawClient client(server_->port());
  client.SendBytes("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(client.ReadAnswer(), HasSubstr("Connection: keep-alive\r\n"));
  client.SendBytes("GET /hello HTTP/1.0\r\n\r\n");
  EXPECT_THAT(client.ReadAll(), EndsWith("hello"));
}

TEST_F(HttpServerTest, HeadHasNoBody) {
  StartServer();
  const std::string answer = Ask("HEAD /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 5\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, RoutesDecodedPathsAndRefusesOthers) {
  HttpServerOptions options;
  options.cors_origin = "*";
  StartServer(options);
  const std::string end = " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  EXPECT_THAT(Ask("GET /items/a%2Fb/c?q=1" + end), EndsWith("[a/b/c]"));
  EXPECT_THAT(Ask("GET http://x/items/1" + end), EndsWith("[1]"));
  EXPECT_THAT(Ask("GET /items/" + end), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Ask("GET /nothing" + end), StartsWith("HTTP/1.1 404 "));
  const std::string refused = Ask("DELETE /hello" + end);
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(refused, HasSubstr("Allow: GET, HEAD, OPTIONS\r\n"));
  const std::string options_answer = Ask("OPTIONS /echo" + end);
  EXPECT_THAT(options_answer, StartsWith("HTTP/1.1 204 "));
  EXPECT_THAT(options_answer, HasSubstr("Access-Control-Allow-Origin: *\r\n"));
  EXPECT_THAT(options_answer, HasSubstr("Access-Control-Allow-Methods: POST, OPTIONS\r\n"));
}

TEST_F(HttpServerTest, HeaderValuesCannotForgeHeaders) {
  StartServer();
  const std::string answer = Ask("GET /forged HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("X-Good: yes\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("X-Forged")));
}

TEST_F(HttpServerTest, ADroppedWriterIsA500) {
  StartServer();
  EXPECT_THAT(Ask("GET /dropped HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 500 "));
}

struct BadRequest {
  const char* name;
  std::string bytes;
  int status;
};

class BadRequestTest : public HttpServerTest, public testing::WithParamInterface<BadRequest> {};

TEST_P(BadRequestTest, IsRefusedAndTheServerGoesOn) {
  HttpServerOptions options;
  options.max_body_bytes = 1000;
  options.max_header_bytes = 2048;
  StartServer(options);
  RawClient client(server_->port());
  client.SendBytes(GetParam().bytes);
  client.ShutdownSend();
  const std::string answer = client.ReadAll();
  EXPECT_THAT(answer, StartsWith(fmt::format("HTTP/1.1 {} ", GetParam().status)));
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(answer, HasSubstr("{\"error\":{\"message\":"));
  EXPECT_THAT(Ask("GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              EndsWith("hello"));
  EXPECT_EQ(server_->Stats().bad_requests, 1U);
}

const std::string kChunkedHead =
    "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";

INSTANTIATE_TEST_SUITE_P(
    Requests,
    BadRequestTest,
    testing::Values(
        BadRequest{"Garbage", "\x16\x03\x01\x00\x00 not http at all\r\n\r\n"s, 400},
        BadRequest{"NoVersion", "GET /hello\r\n\r\n", 400},
        BadRequest{"Http2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
        BadRequest{"BareLineFeeds", "GET /hello HTTP/1.1\nHost: x\n\n", 400},
        BadRequest{"SpaceBeforeColon", "GET /hello HTTP/1.1\r\nHost : x\r\n\r\n", 400},
        BadRequest{"NulInHeader", "GET /hello HTTP/1.1\r\nHost: x\0y\r\n\r\n"s, 400},
        BadRequest{"NoHost", "GET /hello HTTP/1.1\r\n\r\n", 400},
        BadRequest{"TwoHosts", "GET /hello HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400},
        BadRequest{"BadEscape", "GET /items/%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        BadRequest{
            "NegativeLength", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400},
        BadRequest{
            "TwoLengths",
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            400},
        BadRequest{"LengthAndChunked",
                   "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: "
                   "chunked\r\n\r\n0\r\n\r\n",
                   400},
        BadRequest{
            "UnknownEncoding",
            "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            501},
        BadRequest{
            "UnknownExpectation",
            "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\nContent-Length: 1\r\n\r\nx",
            417},
        BadRequest{
            "BodyTooLarge", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n", 413},
        BadRequest{
            "LengthOverflows",
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
            400},
        BadRequest{"ChunksTooLarge",
                   kChunkedHead + "1f4\r\n" + std::string(500, 'a') + "\r\n1f5\r\n" +
                       std::string(501, 'a') + "\r\n0\r\n\r\n",
                   413},
        BadRequest{"ChunkShorterThanSaid", kChunkedHead + "5\r\nab\r\n0\r\n\r\n", 400},
        BadRequest{"ChunkLongerThanSaid", kChunkedHead + "2\r\nabcdef\r\n0\r\n\r\n", 400},
        BadRequest{"ChunkSizeNotHex", kChunkedHead + "xyz\r\nab\r\n0\r\n\r\n", 400},
        BadRequest{"ChunkSizeHuge", kChunkedHead + "ffffffffffffffffff\r\nab\r\n", 400},
        BadRequest{"HeadersTooLarge",
                   "GET /hello HTTP/1.1\r\nHost: x\r\nA: " + std::string(5000, 'a') + "\r\n\r\n",
                   431},
        BadRequest{"HeaderNeverEnds",
                   "GET /hello HTTP/1.1\r\nHost: x\r\nA: " + std::string(100000, 'a'),
                   431},
        BadRequest{"ChunkExtensionNeverEnds", kChunkedHead + "1;" + std::string(100000, 'a'), 431},
        BadRequest{"CutInHeaders", "GET /hello HTTP/1.1\r\nHo", 400},
        BadRequest{
            "CutInBody", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc", 400},
        BadRequest{"CutInChunk", kChunkedHead + "5\r\nab", 400}),
    [](const auto& param_info) { return param_info.param.name; });

TEST_F(HttpServerTest, ContinuesWhenAsked) {
  StartServer();
  RawClient client(server_->port());
  client.SendBytes(
      "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.SendBytes("abc");
  EXPECT_THAT(client.ReadAnswer(), EndsWith("abc"));
}

TEST_F(HttpServerTest, AnswersATooLargeBodyThatIsStillBeingSent) {
  HttpServerOptions options;
  options.max_body_bytes = 1000;
  StartServer(options);
  RawClient client(server_->port());
  client.SendBytes("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n");
  for (int i = 0; i < 80; ++i) client.SendBytes(std::string(100000, 'a'));
  client.ShutdownSend();
  EXPECT_THAT(client.ReadAll(), StartsWith("HTTP/1.1 413 "));
}

TEST_F(HttpServerTest, TellsOfAPeerThatVanishes) {
  StartServer();
  auto client = std::make_unique<RawClient>(server_->port());
  client->SendBytes(kHeldRequest);
  const auto writer = TakeHeld();
  EXPECT_FALSE(writer->disconnected());
  client.reset();
  EXPECT_TRUE(WaitGone());
  EXPECT_TRUE(writer->disconnected());
  EXPECT_FALSE(writer->Send(200, {}, "late"));
  bool at_once = false;
  writer->OnDisconnect([&] { at_once = true; });
  EXPECT_TRUE(at_once);
}

TEST_F(HttpServerTest, TellsOfAPeerThatVanishesInAStream) {
  StartServer();
  auto client = std::make_unique<RawClient>(server_->port());
  client->SendBytes(kHeldRequest);
  const auto writer = TakeHeld();
  EXPECT_TRUE(writer->Start(200, {}));
  EXPECT_TRUE(writer->Write("data: 1\n\n"));
  client->ReadUntil("data: 1\n\n");
  client.reset();
  EXPECT_TRUE(WaitGone());
  EXPECT_FALSE(writer->Write("data: 2\n\n"));
  EXPECT_FALSE(writer->Finish());
}

TEST_F(HttpServerTest, FinishedAnswersTellNothing) {
  StartServer();
  {
    RawClient client(server_->port());
    client.SendBytes(kHeldRequest);
    const auto writer = TakeHeld();
    EXPECT_TRUE(writer->Send(200, {}, "x"));
    EXPECT_FALSE(writer->Send(200, {}, "twice"));
    EXPECT_THAT(client.ReadAnswer(), EndsWith("x"));
  }
  EXPECT_TRUE(server_->Stop(std::chrono::steady_clock::now() + kPatience));
  EXPECT_EQ(server_->Stats().disconnects, 0U);
}

TEST_F(HttpServerTest, CutsASlowReader) {
  HttpServerOptions options;
  options.max_unsent_bytes = 100'000;
  StartServer(options);
  RawClient client(server_->port(), 4096);
  client.SendBytes(kHeldRequest);
  const auto writer = TakeHeld();
  EXPECT_TRUE(writer->Start(200, {}));
  const std::string piece(10'000, 'x');
  // Socket buffers of both sides take some megabytes before bytes have to wait here.
  bool cut = false;
  for (int i = 0; i < 20'000 && !cut; ++i) cut = !writer->Write(piece);
  EXPECT_TRUE(cut);
  EXPECT_TRUE(WaitGone());
}

TEST_F(HttpServerTest, ManyWritesArriveWholeAndInOrder) {
  StartServer();
  RawClient client(server_->port());
  client.SendBytes(kHeldRequest);
  const auto writer = TakeHeld();
  writer->Start(200, {});
  std::thread source([&] {
    for (int i = 0; i < 5000; ++i) ASSERT_TRUE(writer->Write(fmt::format("{};", i)));
    writer->Finish();
  });
  client.ReadUntil("\r\n\r\n");
  for (int i = 0; i < 5000; ++i) {
    client.ReadUntil("\r\n");
    ASSERT_EQ(client.ReadUntil("\r\n"), fmt::format("{};\r\n", i));
  }
  EXPECT_EQ(client.ReadUntil("0\r\n\r\n"), "0\r\n\r\n");
  source.join();
}

TEST_F(HttpServerTest, RefusesConnectionsOverTheLimit) {
  HttpServerOptions options;
  options.max_connections = 2;
  StartServer(options);
  RawClient first(server_->port());
  RawClient second(server_->port());
  for (RawClient* client : {&first, &second}) {
    client->SendBytes("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(client->ReadAnswer(), EndsWith("hello"));
  }
  const std::string refused = Ask("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(refused, HasSubstr("Retry-After: "));
  first.SendBytes("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(first.ReadAnswer(), EndsWith("hello"));
}

TEST_F(HttpServerTest, TimeLimits) {
  HttpServerOptions options;
  options.header_timeout = 30ms;
  options.body_timeout = 30ms;
  options.idle_timeout = 30ms;
  StartServer(options);
  RawClient idle(server_->port());
  EXPECT_EQ(idle.ReadAll(), "");
  RawClient slow_header(server_->port());
  slow_header.SendBytes("GET /hello HTTP/1.1\r\n");
  EXPECT_THAT(slow_header.ReadAll(), StartsWith("HTTP/1.1 408 "));
  RawClient slow_body(server_->port());
  slow_body.SendBytes("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_THAT(slow_body.ReadAll(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpServerTest, StopLetsAnswersFinish) {
  StartServer();
  RawClient idle(server_->port());
  RawClient client(server_->port());
  client.SendBytes(kHeldRequest);
  const auto writer = TakeHeld();
  std::thread stopper(
      [&] { EXPECT_TRUE(server_->Stop(std::chrono::steady_clock::now() + kPatience)); });
  EXPECT_EQ(idle.ReadAll(), "");  // closed by Stop, so it has begun
  EXPECT_TRUE(writer->Send(200, {}, "last words"));
  const std::string answer = client.ReadAll();
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(answer, EndsWith("last words"));
  client.Close();
  stopper.join();
}

TEST_F(HttpServerTest, StopCutsWhatIsLate) {
  StartServer();
  RawClient client(server_->port());
  client.SendBytes(kHeldRequest);
  const auto writer = TakeHeld();
  EXPECT_FALSE(server_->Stop(std::chrono::steady_clock::now()));
  EXPECT_TRUE(WaitGone());
  server_.reset();
  EXPECT_FALSE(writer->Send(200, {}, "after the server's end"));
}

TEST_F(HttpServerTest, ATakenPortIsToldByName) {
  StartServer();
  HttpServerOptions options;
  options.port = server_->port();
  const auto second = HttpServer::Create(options, [](HttpRequest, auto) {});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(std::to_string(options.port)));
  options.address = "not an address";
  EXPECT_EQ(HttpServer::Create(options, [](HttpRequest, auto) {}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(HttpServerTest, SeveralIoThreads) {
  HttpServerOptions options;
  options.io_threads = 4;
  StartServer(options);
  std::vector<std::thread> clients;
  for (int t = 0; t < 8; ++t) {
    clients.emplace_back([&] {
      RawClient client(server_->port());
      for (int i = 0; i < 200; ++i) {
        client.SendBytes("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
        ASSERT_THAT(client.ReadAnswer(), EndsWith("abc"));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(server_->Stats().requests, 1600U);
}

}  // namespace
}  // namespace holmes::net
