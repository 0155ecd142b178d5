#include "app/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include "app/command.h"
#include "app/log_sink.h"
#include "base/edit_distance.h"

namespace holmes::app {
namespace {

constexpr CommandEntry kCommands[] = {
    {"serve",
     "MODEL [options]",
     "Serves a model through an OpenAI-compatible HTTP API.",
     &MakeServeCommand},
    {"run", "MODEL [PROMPT] [options]", "Chats with a model in the terminal.", &MakeRunCommand},
    {"bench",
     "MODEL [options] | --url URL [options]",
     "Measures a model in this process, or a server.",
     &MakeBenchCommand},
    {"list", "[options]", "Lists the models in the local store.", &MakeListCommand},
};

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitInterrupted = 130;

std::string GeneralHelp() {
  std::string out = "Holmes serves large language models.\n\nusage: holmes COMMAND [options]\n\n";
  for (const CommandEntry& entry : Commands())
    out += fmt::format("  {:<8}{}\n", entry.name, entry.summary);
  out += "\n`holmes COMMAND --help` tells a command's options, `holmes --version` the version.\n";
  return out;
}

int ExitCode(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kCancelled:
      return kExitInterrupted;
    case StatusCode::kInvalidArgument:
      return kExitUsage;
    default:
      return kExitFailed;
  }
}

int Fail(const Status& status) {
  if (!status.ok() && !status.message().empty())
    fmt::print(stderr, "holmes: {}\n", status.message());
  return ExitCode(status);
}

std::vector<std::string> NamesOfAllOptions() {
  std::vector<std::string> names;
  for (const CommandEntry& entry : Commands()) {
    const std::unique_ptr<Command> command = entry.make();
    OptionTable table{std::string(entry.name), "", ""};
    command->AddOptions(table);
    for (std::string& name : table.Names()) names.push_back(std::move(name));
  }
  return names;
}

int RunCommand(const CommandEntry& entry,
               std::span<const std::string> args,
               const Environment& environment) {
  const std::unique_ptr<Command> command = entry.make();
  OptionTable table{std::string(entry.name), std::string(entry.usage), std::string(entry.summary)};
  std::string log_level = "info";
  command->AddOptions(table);
  table.Add({.name = "log-level",
             .value_name = "LEVEL",
             .help = "how much is written to the log",
             .target = &log_level,
             .choices = {"debug", "info", "warning", "error"}});
  std::vector<std::string> all_names = NamesOfAllOptions();
  all_names.push_back("log-level");
  if (const Status status = table.Parse(args, environment, all_names); !status.ok())
    return Fail(status);
  if (table.help_wanted()) {
    fmt::print("{}", table.Help());
    return 0;
  }
  StartLog(log_level);
  return Fail(command->Run());
}

}  // namespace

std::span<const CommandEntry> Commands() { return kCommands; }

int RunCommandLine(std::span<const std::string> args, const Environment& environment) {
  if (args.empty()) {
    fmt::print(stderr, "{}", GeneralHelp());
    return kExitUsage;
  }
  const std::string& first = args[0];
  if (first == "--help" || first == "-h" || first == "help") {
    fmt::print("{}", GeneralHelp());
    return 0;
  }
  if (first == "--version" || first == "version") {
    fmt::print("holmes {}\n", HOLMES_VERSION);
    return 0;
  }
  std::vector<std::string_view> names;
  for (const CommandEntry& entry : Commands()) {
    if (entry.name == first) return RunCommand(entry, args.subspan(1), environment);
    names.push_back(entry.name);
  }
  return Fail(base::InvalidArgumentError(
      fmt::format("unknown command {}; did you mean {}? `holmes --help` lists them",
                  first,
                  base::Nearest(first, names))));
}

}  // namespace holmes::app
