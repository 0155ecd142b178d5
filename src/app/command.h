/// What a subcommand of `holmes` is.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "app/options.h"
#include "base/status.h"

namespace holmes::app {

/// Made, given its options, run once.
class Command {
 public:
  virtual ~Command() = default;
  /// Targets are the command's members.
  virtual void AddOptions(OptionTable& table) = 0;
  /// The status becomes the exit code: kOk 0, kCancelled (by the user) 130, kInvalidArgument 2,
  /// others 1.
  virtual Status Run() = 0;
};

struct CommandEntry {
  std::string_view name;
  std::string_view usage;
  std::string_view summary;
  std::unique_ptr<Command> (*make)();
};

std::unique_ptr<Command> MakeBenchCommand();
std::unique_ptr<Command> MakeListCommand();
std::unique_ptr<Command> MakeRunCommand();
std::unique_ptr<Command> MakeServeCommand();

/// In the order of the help.
std::span<const CommandEntry> Commands();

}  // namespace holmes::app
