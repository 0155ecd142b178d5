#include "app/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "app/command.h"

namespace holmes::app {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

Outcome Holmes(std::vector<std::string> args, const Environment& environment = {}) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.exit_code = RunCommandLine(args, environment);
  outcome.out = ::testing::internal::GetCapturedStdout();
  outcome.err = ::testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(CommandLineTest, HelpNamesEveryCommand) {
  const Outcome outcome = Holmes({"--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  for (const CommandEntry& entry : Commands())
    EXPECT_THAT(outcome.out, HasSubstr(std::string(entry.name)));
}

TEST(CommandLineTest, EveryCommandHasHelp) {
  for (const CommandEntry& entry : Commands()) {
    const Outcome outcome = Holmes({std::string(entry.name), "--help"});
    EXPECT_EQ(outcome.exit_code, 0) << entry.name;
    EXPECT_THAT(outcome.out, HasSubstr("usage: holmes " + std::string(entry.name)));
    EXPECT_THAT(outcome.out, HasSubstr("--log-level"));
  }
}

TEST(CommandLineTest, TellsItsVersion) {
  const Outcome outcome = Holmes({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, StartsWith("holmes "));
}

TEST(CommandLineTest, NothingOrNonsenseIsAUsageError) {
  EXPECT_EQ(Holmes({}).exit_code, 2);
  const Outcome outcome = Holmes({"lst"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err,
            "holmes: unknown command lst; did you mean list? `holmes --help` lists them\n");
}

TEST(CommandLineTest, AWrongOptionIsOneLineAndExitCode2) {
  const Outcome outcome = Holmes({"list", "--log-levle", "debug"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err,
              StartsWith("holmes: unknown option --log-levle; did you mean --log-level?"));
}

}  // namespace
}  // namespace holmes::app
