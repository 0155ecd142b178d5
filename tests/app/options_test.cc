#include "app/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace holmes::app {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// A table with one option of every kind.
class OptionsTest : public ::testing::Test {
 protected:
  OptionsTest() {
    table_.Add({.name = "model",
                .positional = true,
                .value_name = "MODEL",
                .help = "what to serve",
                .target = &model_});
    table_.Add({.name = "port",
                .short_name = 'p',
                .help = "TCP port",
                .target = &port_,
                .low = 0,
                .high = 65535});
    table_.Add({.name = "kv-cache", .help = "memory for keys and values", .target = &kv_cache_});
    table_.Add({.name = "simd",
                .help = "instruction set",
                .target = &simd_,
                .choices = {"auto", "avx512", "scalar"}});
    table_.Add({.name = "temperature",
                .help = "of sampling",
                .target = &temperature_,
                .low = 0,
                .high = 2});
    table_.Add({.name = "min-p", .help = "of sampling", .target = &min_p_, .low = 0, .high = 1});
    table_.Add({.name = "stats", .help = "print figures", .target = &stats_});
    std::string name = (fs::temp_directory_path() / "holmes_options_XXXXXX").string();
    dir_ = ::mkdtemp(name.data());
  }
  ~OptionsTest() override {
    std::error_code ignored;
    fs::remove_all(dir_, ignored);
  }
  std::string File(std::string_view text) {
    const std::string path = (dir_ / "holmes.yaml").string();
    std::ofstream(path) << text;
    return path;
  }
  Status Parse(std::vector<std::string> args, const Environment& environment = {}) {
    return table_.Parse(args, environment, std::vector<std::string>{"max-tokens"});
  }
  static std::string Message(const Status& status) { return std::string(status.message()); }

  fs::path dir_;
  std::string model_;
  int port_ = 8000;
  std::int64_t kv_cache_ = 0;
  std::string simd_ = "auto";
  double temperature_ = 1;
  std::optional<double> min_p_;
  bool stats_ = false;
  OptionTable table_{"serve", "MODEL [options]", "Serves a model."};
};

TEST_F(OptionsTest, KeepsDefaultsWhereNothingIsGiven) {
  ASSERT_TRUE(Parse({}).ok());
  EXPECT_EQ(port_, 8000);
  EXPECT_EQ(temperature_, 1);
  EXPECT_FALSE(stats_);
}

TEST_F(OptionsTest, ReadsEveryKindFromFlags) {
  const Status status = Parse({"a.gguf",
                               "-p",
                               "1234",
                               "--kv-cache=512",
                               "--simd",
                               "scalar",
                               "--temperature",
                               "0.5",
                               "--stats"});
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(model_, "a.gguf");
  EXPECT_EQ(port_, 1234);
  EXPECT_EQ(kv_cache_, 512);
  EXPECT_EQ(simd_, "scalar");
  EXPECT_EQ(temperature_, 0.5);
  EXPECT_TRUE(stats_);
}

TEST_F(OptionsTest, ASwitchCanBeTurnedOff) {
  ASSERT_TRUE(Parse({"--stats=false"}, {{"HOLMES_STATS", "true"}}).ok());
  EXPECT_FALSE(stats_);
}

TEST_F(OptionsTest, TheLastOfARepeatedFlagCounts) {
  ASSERT_TRUE(Parse({"--port", "1", "--port", "2"}).ok());
  EXPECT_EQ(port_, 2);
}

TEST_F(OptionsTest, FlagsWinOverVariablesAndVariablesOverTheFile) {
  const std::string file = File("port: 1\nsimd: scalar\ntemperature: 0.1\nmodel: from-file\n");
  ASSERT_TRUE(Parse({"--config", file}).ok());
  EXPECT_EQ(port_, 1);
  EXPECT_EQ(model_, "from-file");
  ASSERT_TRUE(
      Parse({"--port", "3", "--config", file}, {{"HOLMES_PORT", "2"}, {"HOLMES_SIMD", "avx512"}})
          .ok());
  EXPECT_EQ(port_, 3);
  EXPECT_EQ(simd_, "avx512");
  EXPECT_EQ(temperature_, 0.1);
  ASSERT_TRUE(Parse({}, {{"HOLMES_CONFIG", file}}).ok());
  EXPECT_EQ(port_, 1);
}

TEST_F(OptionsTest, AnUnknownNameIsAnErrorThatNamesTheNearest) {
  Status status = Parse({"--prot", "1"});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("unknown option --prot; did you mean --port?"));
  status = Parse({"--temprature=1"});
  EXPECT_THAT(Message(status),
              HasSubstr("unknown option --temprature; did you mean --temperature?"));
  status = Parse({}, {{"HOLMES_PROT", "1"}});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("HOLMES_PROT; did you mean HOLMES_PORT?"));
  status = Parse({"--config", File("port: 1\nkv_cash: 1\n")});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status),
              HasSubstr("holmes.yaml:2: unknown key kv_cash; did you mean kv_cache?"));
}

TEST_F(OptionsTest, VariablesOfOtherCommandsAndOfTestsAreNoErrors) {
  EXPECT_TRUE(Parse({},
                    {{"HOLMES_MAX_TOKENS", "7"},
                     {"HOLMES_TEST_MODEL", "x"},
                     {"HOLMES_SHARED_DIR", "x"},
                     {"HOLMES_PORT", ""},
                     {"HOME", "/"}})
                  .ok());
  EXPECT_EQ(port_, 8000);
}

TEST_F(OptionsTest, ABadValueNamesOptionValueAndRange) {
  Status status = Parse({"--port", "99999"});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status), "--port: \"99999\" is not a whole number of 0 to 65535");
  EXPECT_EQ(Message(Parse({}, {{"HOLMES_PORT", "-1"}})),
            "HOLMES_PORT: \"-1\" is not a whole number of 0 to 65535");
  EXPECT_THAT(Message(Parse({"--config", File("port: 80x\n")})),
              HasSubstr("holmes.yaml:1: port: \"80x\" is not a whole number"));
  for (const char* bad : {"nan", "3", "", "1e999", "0x1"})
    EXPECT_FALSE(Parse({"--temperature=" + std::string(bad)}).ok()) << bad;
  for (const char* bad : {"1.5", "1k", "99999999999999999999"})
    EXPECT_FALSE(Parse({"--kv-cache=" + std::string(bad)}).ok()) << bad;
  EXPECT_THAT(Message(Parse({"--simd", "avx51"})), HasSubstr("did you mean avx512?"));
  EXPECT_FALSE(Parse({"--stats=maybe"}).ok());
}

TEST_F(OptionsTest, AFlagWithoutItsValueIsAnError) {
  const Status status = Parse({"--port"});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("--port"));
}

TEST_F(OptionsTest, AnArgumentTooManyIsAnError) {
  EXPECT_THAT(Message(Parse({"a.gguf", "b.gguf"})), HasSubstr("b.gguf"));
}

TEST_F(OptionsTest, BrokenFilesAreErrorsWithALine) {
  for (const char* text : {"port: [1, 2]\n",
                           "- port\n",
                           "port:\n",
                           "port: 1\nport: 2\n",
                           "port: {a: 1}\n",
                           "port: \"1\n",
                           "? [a]\n: 1\n",
                           "*a: 1\n"}) {
    const Status status = Parse({"--config", File(text)});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(Message(status), HasSubstr("holmes.yaml")) << text;
  }
  EXPECT_TRUE(Parse({"--config", File("")}).ok());
  EXPECT_EQ(Parse({"--config", "/no/such/file.yaml"}).code(), StatusCode::kNotFound);
  EXPECT_FALSE(Parse({"--config", "/"}).ok());
  EXPECT_FALSE(Parse({"--config", File(std::string((1 << 20) + 1, '#'))}).ok());
}

TEST_F(OptionsTest, HelpTellsEveryOptionWithItsDefaultAndRange) {
  ASSERT_TRUE(Parse({"--help", "--nonsense"}).ok());
  EXPECT_TRUE(table_.help_wanted());
  const std::string help = table_.Help();
  EXPECT_THAT(help, HasSubstr("usage: holmes serve MODEL [options]"));
  EXPECT_THAT(help, HasSubstr("-p, --port N"));
  EXPECT_THAT(help, HasSubstr("(0 to 65535; default 8000)"));
  EXPECT_THAT(help, HasSubstr("HOLMES_SOME_NAME"));
}

TEST_F(OptionsTest, AnOptionalStaysUnsetUntilGiven) {
  ASSERT_TRUE(Parse({"m.gguf"}).ok());
  EXPECT_FALSE(min_p_.has_value());
  EXPECT_FALSE(Parse({"m.gguf", "--min-p", "1.5"}).ok());
  EXPECT_FALSE(min_p_.has_value());
  ASSERT_TRUE(Parse({"m.gguf", "--min-p", "0.05"}).ok());
  EXPECT_EQ(min_p_, 0.05);
}

}  // namespace
}  // namespace holmes::app
