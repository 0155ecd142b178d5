#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "base/bounded_queue.h"
#include "server/server_fixture.h"

namespace holmes::server {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST_F(ServerTest, RefusesAndGoesOn) {
  ServerOptions options;
  options.http.max_body_bytes = 10'000;
  StartServer(kHello, options);
  const std::string deep = TextBody(std::string(4000, '[') + std::string(4000, ']'));
  const struct {
    std::string name;
    std::string request;
    int status;
    std::string param;
  } cases[] = {
      {"not JSON", PostText("/v1/chat/completions", "{"), 400, "null"},
      {"not UTF-8", PostText("/v1/completions", TextBody("\"\xFF\"")), 400, "null"},
      {"deep", PostText("/v1/completions", deep), 400, "null"},
      {"too large",
       PostText("/v1/completions", TextBody("\"" + std::string(20'000, 'a') + "\"")),
       413,
       "null"},
      {"empty messages", PostText("/v1/chat/completions", R"({"messages":[]})"), 400, "messages"},
      {"template says no",
       PostText("/v1/chat/completions", R"({"messages":[{"role":"mystery","content":"x"}]})"),
       400,
       "messages"},
      {"unknown model",
       PostText("/v1/completions", R"({"model":"gpt-9","prompt":"a"})"),
       404,
       "model"},
      {"n 0", PostText("/v1/completions", TextBody(R"("a")", R"(,"n":0)")), 400, "n"},
      {"id out of range", PostText("/v1/completions", TextBody("[259]")), 400, "prompt"},
      {"negative id", PostText("/v1/completions", TextBody("[-1]")), 400, "prompt"},
      {"bias out of range",
       PostText("/v1/completions", TextBody(R"("a")", R"(,"logit_bias":{"259":1})")),
       400,
       "logit_bias"},
      {"misspelt",
       PostText("/v1/completions", TextBody(R"("a")", R"(,"temprature":1)")),
       400,
       "temprature"},
      {"other media type",
       "POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: "
       "text/plain\r\nContent-Length: 2\r\n\r\n{}",
       415,
       "null"},
      {"wrong method",
       "GET /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
       405,
       "null"},
      {"wrong path", "GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404, "null"},
      {"no HTTP", "hello\r\n\r\n", 400, "null"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.name);
    const Reply reply = Ask(one.request);
    EXPECT_EQ(reply.status, one.status) << reply.body;
    EXPECT_EQ(reply.Error("param").substr(0, one.param.size()), one.param);
    EXPECT_THAT(reply.Error("message"), Not(IsEmpty()));
    EXPECT_EQ(Post("/v1/completions", TextBody(R"("a")")).status, 200);
  }
}

TEST_F(ServerTest, WantsItsKey) {
  ServerOptions options;
  options.api_key = "secret";
  StartServer(kHello, options);
  const Reply none = Get("/v1/models");
  EXPECT_EQ(none.status, 401);
  EXPECT_THAT(none.head, HasSubstr("WWW-Authenticate: Bearer"));
  EXPECT_EQ(none.Error("code"), "invalid_api_key");
  EXPECT_EQ(Get("/v1/models", "Authorization: Bearer secres\r\n").status, 401);
  EXPECT_EQ(Get("/v1/models", "Authorization: Bearer secretsecret\r\n").status, 401);
  EXPECT_EQ(Get("/v1/models", "Authorization: Bearer \r\n").status, 401);
  EXPECT_EQ(Post("/tokenize", R"({"prompt":"a"})").status, 401);
  EXPECT_EQ(Get("/v1/models", "Authorization: Bearer secret\r\n").status, 200);
  EXPECT_EQ(Get("/health").status, 200);
  EXPECT_EQ(Get("/metrics").status, 200);
}

TEST_F(ServerTest, AFullEngineIs429) {
  engine_ = std::make_unique<FakeEngine>(kHello);
  engine_->set_accept_limit(1);
  StartServer(ServerOptions{});
  const Reply reply = Post("/v1/completions", TextBody(R"(["a","b"])", R"(,"stream":true)"));
  EXPECT_EQ(reply.status, 429);
  EXPECT_THAT(reply.head, HasSubstr("Retry-After: "));
  // The prompt that was taken before the other was refused does not run on.
  EXPECT_TRUE(engine_->WaitCancelled(1));
}

TEST_F(ServerTest, FullWorkersAre429) {
  ServerOptions options;
  options.worker_threads = 1;
  options.worker_queue = 1;
  std::promise<void> entered;
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  std::atomic<int> calls{0};
  ServedModel model;
  model.render_chat = [&](const text::Value& variables) {
    if (calls.fetch_add(1) == 0) {
      entered.set_value();
      released.wait();
    }
    return RenderChatMl(variables);
  };
  StartServer(kHello, options, model);
  net::RawClient first(server_->port());
  first.SendBytes(PostText("/v1/chat/completions", ChatBody()));
  entered.get_future().wait();
  // One runs and one may wait, so of three more two are refused, whichever come later.
  base::BoundedQueue<Reply> replies(3);
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&] { replies.Push(Post("/v1/chat/completions", ChatBody())); });
  }
  for (int i = 0; i < 2; ++i) {
    const Reply refused = *replies.Pop();
    EXPECT_EQ(refused.status, 429);
    EXPECT_THAT(refused.head, HasSubstr("Retry-After: "));
  }
  release.set_value();
  EXPECT_EQ(replies.Pop()->status, 200);
  for (std::thread& client : clients) client.join();
  EXPECT_THAT(first.ReadAll(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(ServerTest, DeadlinesAreTheServersOrTheRequestsShorterOne) {
  ServerOptions options;
  options.request_timeout_s = 1000;
  StartServer(kHello, options);
  const auto ask = [&](const std::string& header) {
    const auto before = std::chrono::steady_clock::now();
    EXPECT_EQ(Post("/v1/completions", TextBody(R"("a")"), header).status, 200);
    const auto after = std::chrono::steady_clock::now();
    const auto deadline = engine_->requests().back().deadline;
    EXPECT_TRUE(deadline.has_value());
    return std::pair(*deadline - after, *deadline - before);
  };
  const auto expect_seconds = [&](const std::string& header, double seconds) {
    const auto [low, high] = ask(header);
    EXPECT_LE(std::chrono::duration<double>(low).count(), seconds + 0.001);
    EXPECT_GE(std::chrono::duration<double>(high).count(), seconds - 0.001);
  };
  expect_seconds("", 1000);
  expect_seconds("X-Request-Timeout: 250.5\r\n", 250.5);
  expect_seconds("X-Request-Timeout: 5000\r\n", 1000);
  for (const char* bad : {"0", "-1", "nan", "inf", "1e9", "soon", "", "5s"}) {
    SCOPED_TRACE(bad);
    const Reply reply =
        Post("/v1/completions", TextBody(R"("a")"), fmt::format("X-Request-Timeout: {}\r\n", bad));
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(reply.Error("param"), "x-request-timeout");
  }
}

TEST_F(ServerTest, WithoutALimitThereIsNoDeadline) {
  StartServer(kHello);
  EXPECT_EQ(Post("/v1/chat/completions", ChatBody()).status, 200);
  EXPECT_FALSE(engine_->requests().back().deadline.has_value());
}

TEST_F(ServerTest, ADeadlineThatPassesIs504) {
  StartServer([](const auto& running) {
    if (running->request.n == 2) running->sink(engine::TokensEvent{0, {7}, "part", {}});
    running->sink(engine::ErrorEvent{base::DeadlineExceededError("too late")});
  });
  const Reply whole = Post("/v1/chat/completions", ChatBody());
  EXPECT_EQ(whole.status, 504);
  EXPECT_EQ(whole.Error("code"), "deadline_exceeded");
  const Reply stream = Post("/v1/chat/completions", ChatBody(R"(,"stream":true,"n":2)"));
  EXPECT_EQ(stream.status, 200);
  EXPECT_THAT(stream.body, HasSubstr("deadline_exceeded"));
  EXPECT_THAT(stream.body, Not(HasSubstr("[DONE]")));
}

TEST_F(ServerTest, ADeadlineThatPassedBeforeTheRequestWasReadIs504) {
  ServerOptions options;
  options.request_timeout_s = 1e-9;
  StartServer(kHello, options);
  EXPECT_EQ(Post("/v1/chat/completions", ChatBody()).status, 504);
  EXPECT_TRUE(engine_->requests().empty());
}

TEST_F(ServerTest, ErrorsBeforeAndInTheStream) {
  StartServer([](const auto& running) {
    if (running->request.n == 2) running->sink(engine::TokensEvent{0, {7}, "part", {}});
    running->sink(engine::ErrorEvent{base::InternalError("NaN logits")});
  });
  EXPECT_EQ(Post("/v1/chat/completions", ChatBody()).status, 500);
  EXPECT_EQ(Post("/v1/chat/completions", ChatBody(R"(,"stream":true)")).status, 500);
  const Reply broken = Post("/v1/chat/completions", ChatBody(R"(,"stream":true,"n":2)"));
  EXPECT_EQ(broken.status, 200);
  EXPECT_THAT(broken.body, HasSubstr("part"));
  EXPECT_THAT(broken.body, HasSubstr("data: {\"error\":{\"message\":\"NaN logits\""));
  EXPECT_THAT(broken.body, Not(HasSubstr("[DONE]")));
}

}  // namespace
}  // namespace holmes::server
