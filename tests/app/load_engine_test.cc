#include "app/load_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "app/chat.h"

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

TEST_F(LoadEngineTest, ChatsWithTheTemplateOfTheModel) {
  std::ofstream(dir_ / "chat_template.jinja")
      << "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:";
  LoadOptions options = TinyOptions();
  options.model = dir_.string();
  const auto loaded = LoadEngine(options);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  ChatOptions chat;
  chat.max_tokens = 3;
  chat.temperature = 0;
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
