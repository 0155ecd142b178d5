/// What an option may hold and how its text is read: the same rules for flags, environment
/// variables and YAML files.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace holmes::app {

/// Where the value goes. What it points to at first is the default; an empty optional prints as
/// nothing.
using OptionTarget = std::variant<std::string*,
                                  bool*,
                                  int*,
                                  std::int64_t*,
                                  double*,
                                  std::optional<int>*,
                                  std::optional<std::int64_t>*,
                                  std::optional<double>*>;

struct OptionSpec {
  /// "drain-timeout" is the flag --drain-timeout, the variable HOLMES_DRAIN_TIMEOUT and the key
  /// drain_timeout.
  std::string name;
  char short_name = 0;
  /// Given without a flag, in the order of Add.
  bool positional = false;
  /// "N", "SECONDS" in the help; empty = by kind.
  std::string value_name;
  std::string help;
  OptionTarget target;
  /// Of numbers; both ends included.
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  /// Of texts; empty = any.
  std::vector<std::string> choices;
};

bool IsSwitch(const OptionSpec& spec);
std::string FlagOf(const OptionSpec& spec);      // "--drain-timeout"
std::string VariableOf(const OptionSpec& spec);  // "HOLMES_DRAIN_TIMEOUT"
std::string KeyOf(const OptionSpec& spec);       // "drain_timeout"
std::string ValueName(const OptionSpec& spec);
/// "0 to 65535", "one of auto, scalar", empty where anything goes.
std::string AllowedText(const OptionSpec& spec);
/// The target's present value.
std::string ValueText(const OptionSpec& spec);

/// Reads `text` into the target. Errors: kInvalidArgument "`where`: `text` is not ...", with the
/// range or the choices and the nearest of these.
Status SetValue(const OptionSpec& spec, std::string_view text, std::string_view where);

}  // namespace holmes::app
