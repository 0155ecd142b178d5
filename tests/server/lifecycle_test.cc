#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <future>

#include "server/server_fixture.h"

namespace holmes::server {
namespace {

using testing::HasSubstr;

TEST_F(ServerTest, AVanishedClientCancels) {
  std::promise<void> arrived;
  StartServer([&](const auto&) { arrived.set_value(); });
  for (const char* more : {"", R"(,"stream":true)"}) {
    const std::size_t before = engine_->num_cancelled();
    arrived = {};
    {
      net::RawClient client(server_->port());
      client.SendBytes(PostText("/v1/chat/completions", ChatBody(more)));
      ASSERT_EQ(arrived.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
    }
    EXPECT_TRUE(engine_->WaitCancelled(before + 1));
  }
  EXPECT_THAT(Get("/metrics").body, HasSubstr("holmes_requests_total{outcome=\"cancelled\"} 2"));
}

TEST_F(ServerTest, AClientThatVanishesInItsStreamCancels) {
  StartServer([](const auto& running) { running->sink(engine::TokensEvent{0, {7}, "hello", {}}); });
  {
    net::RawClient client(server_->port());
    client.SendBytes(PostText("/v1/chat/completions", ChatBody(R"(,"stream":true)")));
    EXPECT_THAT(client.ReadUntil("hello"), HasSubstr("hello"));
  }
  EXPECT_TRUE(engine_->WaitCancelled(1));
}

TEST_F(ServerTest, ReadinessAndDrain) {
  std::promise<std::shared_ptr<FakeEngine::Running>> arrived;
  StartServer([&](const auto& running) { arrived.set_value(running); });
  EXPECT_EQ(Get("/ready").status, 200);
  server_->SetReady(false);
  EXPECT_EQ(Get("/ready").status, 503);
  EXPECT_EQ(Get("/health").status, 200);
  net::RawClient client(server_->port());
  client.SendBytes(PostText("/v1/chat/completions", ChatBody(R"(,"stream":true)")));
  const auto running = arrived.get_future().get();
  running->sink(engine::TokensEvent{0, {7}, "first", {}});
  client.ReadUntil("first");
  std::thread stopper([&] { EXPECT_TRUE(server_->Stop(Later())); });
  EXPECT_TRUE(engine_->WaitDraining());
  Say(*running, {"second"});
  const std::string rest = client.ReadAll();
  EXPECT_THAT(rest, HasSubstr("second"));
  EXPECT_THAT(rest, HasSubstr("[DONE]"));
  client.Close();
  stopper.join();
}

TEST_F(ServerTest, BeforeTheModelIsLoadedOnlyHealthIsGood) {
  engine_ = std::make_unique<FakeEngine>(kHello);
  ServerOptions options;
  options.api_key = "secret";
  StartWithoutModel(options);
  const std::string key = "Authorization: Bearer secret\r\n";
  EXPECT_EQ(Get("/health").status, 200);
  EXPECT_EQ(Get("/ready").status, 503);
  EXPECT_EQ(Get("/metrics").status, 503);
  EXPECT_EQ(Get("/v1/models").status, 401);
  EXPECT_EQ(Get("/v1/models", key).status, 503);
  const Reply early = Post("/v1/chat/completions", ChatBody(), key);
  EXPECT_EQ(early.status, 503);
  EXPECT_THAT(early.head, HasSubstr("Retry-After: "));
  EXPECT_THAT(early.Error("message"), HasSubstr("loading"));
  server_->Serve(engine_.get(), {.names = {}, .defaults = {}, .render_chat = RenderChatMl});
  EXPECT_EQ(Get("/ready").status, 503);
  EXPECT_EQ(Post("/v1/chat/completions", ChatBody(), key).status, 200);
  server_->SetReady(true);
  EXPECT_EQ(Get("/ready").status, 200);
  EXPECT_EQ(Get("/metrics").status, 200);
}

TEST_F(ServerTest, StopsWithoutAModel) {
  StartWithoutModel();
  EXPECT_TRUE(server_->Stop(Later()));
}

TEST_F(ServerTest, ListsModels) {
  StartServer(kHello, {}, {.names = {"org/model", "alias"}, .defaults = {}, .render_chat = {}});
  const json::value list = Get("/v1/models").Json();
  EXPECT_EQ(list.at("data").as_array().size(), 2U);
  EXPECT_EQ(Get("/v1/models/org%2Fmodel").Json().at("id").as_string(), "org/model");
  EXPECT_EQ(Get("/v1/models/org/model").status, 200);
  EXPECT_EQ(Get("/v1/models/other").status, 404);
}

TEST_F(ServerTest, EchoesRequestIds) {
  StartServer(kHello);
  EXPECT_THAT(Post("/v1/completions", TextBody(R"("a")"), "X-Request-Id: abc-1\r\n").head,
              HasSubstr("x-request-id: abc-1\r\n"));
  EXPECT_THAT(Post("/v1/completions", "{", "X-Request-Id: abc-2\r\n").head,
              HasSubstr("x-request-id: abc-2\r\n"));
  EXPECT_THAT(Post("/v1/completions", TextBody(R"("a")")).head, HasSubstr("x-request-id: req-"));
}

TEST_F(ServerTest, ShowsMetrics) {
  StartServer(kHello);
  Post("/v1/completions", TextBody(R"("a")"));
  const std::string text = Get("/metrics").body;
  for (const char* line : {"holmes_requests_total{outcome=\"ok\"} 1",
                           "holmes_requests_total{outcome=\"failed\"} 0",
                           "holmes_time_to_first_token_seconds_count 1",
                           "holmes_time_per_output_token_seconds_count 1",
                           "holmes_e2e_request_latency_seconds_count 1",
                           "holmes_prompt_tokens_total 11",
                           "holmes_generation_tokens_total 22",
                           "holmes_num_requests_running 3",
                           "holmes_kv_cache_usage_ratio 0.25",
                           "vllm:num_requests_running{model_name=\"fake\"} 3",
                           "vllm:time_to_first_token_seconds_count{model_name=\"fake\"} 1"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace holmes::server
