#include "app/load_engine.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "app/chat.h"
#include "app/generation_defaults.h"
#include "app/warm_up.h"

namespace holmes::app {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

fs::path TinyModel() {
  return fs::path(HOLMES_SOURCE_DIR) / "tests" / "model" / "data" / "tiny_llama";
}

LoadOptions TinyOptions() {
  LoadOptions options;
  options.model = TinyModel().string();
  options.threads = 1;
  return options;
}

/// A copy of the tiny model that a test may break.
class LoadEngineTest : public ::testing::Test {
 protected:
  LoadEngineTest() {
    std::string name = (fs::temp_directory_path() / "holmes_app_XXXXXX").string();
    dir_ = ::mkdtemp(name.data());
    for (const auto& entry : fs::directory_iterator(TinyModel())) fs::copy(entry.path(), dir_);
  }
  ~LoadEngineTest() override {
    std::error_code ignored;
    fs::remove_all(dir_, ignored);
  }
  Status LoadCopy() {
    LoadOptions options = TinyOptions();
    options.model = dir_.string();
    return LoadEngine(options).status();
  }
  fs::path dir_;
};

TEST_F(LoadEngineTest, TellsWhatItServes) {
  LoadOptions options = TinyOptions();
  options.model_name = "tiny";
  options.context_tokens = 64;
  const auto loaded = LoadEngine(options);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(loaded->engine->model().name, "tiny");
  EXPECT_EQ(loaded->engine->model().context_tokens, 64);
  EXPECT_THAT(loaded->device, HasSubstr("1 thread"));
}

TEST_F(LoadEngineTest, NamesTheModelAfterItsFolder) {
  const auto loaded = LoadEngine(TinyOptions());
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(loaded->engine->model().name, "tiny_llama");
}

TEST_F(LoadEngineTest, ATruncatedModelIsAnErrorThatNamesTheFile) {
  fs::resize_file(dir_ / "model.safetensors", fs::file_size(dir_ / "model.safetensors") / 2);
  const Status status = LoadCopy();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("model.safetensors"));
}

TEST_F(LoadEngineTest, AMissingOrEmptyOrForeignModelIsAnError) {
  fs::remove(dir_ / "config.json");
  EXPECT_FALSE(LoadCopy().ok());
  LoadOptions options = TinyOptions();
  options.model = (dir_ / "none").string();
  EXPECT_EQ(LoadEngine(options).status().code(), StatusCode::kNotFound);
  std::ofstream(dir_ / "empty.gguf").flush();
  options.model = (dir_ / "empty.gguf").string();
  EXPECT_FALSE(LoadEngine(options).ok());
  std::ofstream(dir_ / "words.gguf") << "these are only words and no model at all";
  options.model = (dir_ / "words.gguf").string();
  EXPECT_FALSE(LoadEngine(options).ok());
}

TEST_F(LoadEngineTest, MoreMemoryThanThereIsIsAnErrorThatNamesTheOption) {
  LoadOptions options = TinyOptions();
  options.kv_cache_mib = 1 << 24;
  const Status status = LoadEngine(options).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--kv-cache-mib"));
}

TEST_F(LoadEngineTest, TakesTheModelsOwnSamplingValues) {
  std::ofstream(dir_ / "generation_config.json")
      << R"({"do_sample": true, "temperature": 0.6, "top_p": 0.9, "top_k": 20,)"
      << R"( "repetition_penalty": 1.05, "eos_token_id": [1, 2]})";
  LoadOptions options = TinyOptions();
  options.model = dir_.string();
  const auto loaded = LoadEngine(options);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(Describe(loaded->defaults),
            "temperature 0.6, top_p 0.9, top_k 20, repetition_penalty 1.05");
  EXPECT_FALSE(loaded->defaults.min_p.has_value());
  EXPECT_EQ(Describe(Over({.temperature = 0.0, .min_p = 0.1}, loaded->defaults)),
            "temperature 0, top_p 0.9, top_k 20, min_p 0.1, repetition_penalty 1.05");
}

TEST_F(LoadEngineTest, SamplingValuesThatNoRequestCouldHaveAreNamed) {
  for (const auto& [json, key] : {std::pair{R"({"temperature": -1})", "temperature"},
                                  {R"({"top_p": 0})", "top_p"},
                                  {R"({"top_k": 2.5})", "top_k"},
                                  {R"({"min_p": 7})", "min_p"},
                                  {R"({"repetition_penalty": 0})", "repetition_penalty"}}) {
    std::ofstream(dir_ / "generation_config.json") << json;
    const Status status = LoadCopy();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << json;
    EXPECT_THAT(std::string(status.message()), HasSubstr(key));
  }
}

/// Every id that config, generation_config or tokenizer calls an end is one.
TEST_F(LoadEngineTest, EveryEndIdOfTheGenerationConfigEndsAnAnswer) {
  const auto answer = [this](std::string_view generation_config) {
    std::ofstream(dir_ / "generation_config.json") << generation_config;
    LoadOptions options = TinyOptions();
    options.model = dir_.string();
    const auto loaded = LoadEngine(options);
    EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
    std::promise<void> done;
    std::vector<TokenId> ids;
    engine::FinishReason reason{};
    engine::Request request;
    request.prompt = {3, 4, 5};
    request.sampling.temperature = 0;
    request.max_tokens = 8;
    EXPECT_TRUE(loaded->engine
                    ->Submit(request,
                             [&](engine::Event&& event) {
                               if (auto* tokens = std::get_if<engine::TokensEvent>(&event)) {
                                 ids.insert(ids.end(), tokens->ids.begin(), tokens->ids.end());
                               } else if (auto* end = std::get_if<engine::FinishEvent>(&event)) {
                                 reason = end->reason;
                                 done.set_value();
                               }
                             })
                    .ok());
    done.get_future().wait();
    return std::pair(ids, reason);
  };
  const auto [free_ids, free_reason] = answer("{}");
  ASSERT_GE(free_ids.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const TokenId end = free_ids[i];
    const auto [ids, reason] =
        answer(fmt::format(R"({{"eos_token_id": [{}, {}]}})", end, end == 7 ? 8 : 7));
    EXPECT_EQ(reason, engine::FinishReason::kStop);
    EXPECT_EQ(ids.back(), end);
    EXPECT_LE(ids.size(), i + 1);
  }
}

TEST_F(LoadEngineTest, WarmsUpWithAnswers) {
  for (const int context : {0, 2, 3, 64}) {
    LoadOptions options = TinyOptions();
    options.context_tokens = context;
    const auto loaded = LoadEngine(options);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    ASSERT_TRUE(WarmUp(*loaded->engine).ok());
    const engine::EngineStats stats = loaded->engine->Stats();
    EXPECT_EQ(stats.requests_finished, 2U);
    EXPECT_GE(stats.generated_tokens, 2U);
  }
}

TEST_F(LoadEngineTest, AWarmUpThatFailsIsAnError) {
  const auto loaded = LoadEngine(TinyOptions());
  ASSERT_TRUE(loaded.ok());
  loaded->engine->Drain(base::Clock::Real().Now());
  EXPECT_EQ(WarmUp(*loaded->engine).code(), StatusCode::kUnavailable);
}

TEST_F(LoadEngineTest, ChatsWithTheTemplateOfTheModel) {
  std::ofstream(dir_ / "chat_template.jinja")
      << "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:";
  LoadOptions options = TinyOptions();
  options.model = dir_.string();
  const auto loaded = LoadEngine(options);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  ChatOptions chat;
  chat.max_tokens = 3;
  chat.sampling.temperature = 0;
  const auto source = MakeEngineSource(*loaded->engine, chat);
  std::string streamed;
  const auto first =
      source->Answer({{"user", "hi"}}, [&](std::string_view text) { streamed += text; });
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  EXPECT_EQ(first->text, streamed);
  EXPECT_LE(first->completion_tokens, 3);
  const auto second = source->Answer({{"user", "hi"}}, [](std::string_view) {});
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->text, first->text);
}

}  // namespace
}  // namespace holmes::app
