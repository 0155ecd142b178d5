/// The option table: every option is described once and read from flags, HOLMES_ variables and a
/// YAML file.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/option_value.h"
#include "base/status.h"

namespace holmes::app {

/// The environment as a value, so that tests need not change their own.
using Environment = std::map<std::string, std::string>;

class OptionTable {
 public:
  /// `usage` is what follows "holmes NAME" in the help, `summary` its first line.
  OptionTable(std::string command, std::string usage, std::string summary);

  /// Targets must outlive the table. Names are unique.
  void Add(OptionSpec spec);

  /// Reads, later ones winning: the YAML file (--config or HOLMES_CONFIG), variables, flags.
  /// `all_names` are the options of every command: a HOLMES_ variable of another command is no
  /// error. Variables that are empty count as absent, as do HOLMES_TEST_*. Errors: kInvalidArgument
  /// for an unknown or repeated name (the nearest one is named) and for a bad value (name, value,
  /// what is allowed); kNotFound and others for the file.
  Status Parse(std::span<const std::string> args,
               const Environment& environment,
               std::span<const std::string> all_names);

  /// --help was given; nothing else was read.
  bool help_wanted() const { return help_wanted_; }
  std::string Help() const;
  std::vector<std::string> Names() const;

 private:
  using Flags = std::map<std::string, std::string, std::less<>>;  // by option name
  StatusOr<Flags> ReadFlags(std::span<const std::string> args);
  Status ReadFile(const std::string& path);
  Status ReadVariables(const Environment& environment, std::span<const std::string> all_names);
  Status UnknownFlag(std::string_view argument) const;

  std::string command_;
  std::string usage_;
  std::string summary_;
  std::string config_path_;
  bool help_wanted_ = false;
  std::vector<OptionSpec> specs_;
};

}  // namespace holmes::app
