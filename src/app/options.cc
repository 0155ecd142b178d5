#include "app/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "app/yaml_file.h"
#include "base/check.h"
#include "base/edit_distance.h"

namespace holmes::app {
namespace {

constexpr std::string_view kVariablePrefix = "HOLMES_";
/// Read by our own tests, never by the program.
constexpr std::string_view kTestVariables[] = {"HOLMES_TEST_", "HOLMES_SHARED_DIR"};
constexpr std::size_t kHelpColumn = 30;
constexpr std::size_t kHelpWidth = 100;

bool IsTestVariable(std::string_view name) {
  return std::any_of(std::begin(kTestVariables),
                     std::end(kTestVariables),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::string VariableOfName(const std::string& name) {
  return VariableOf({.name = name, .target = static_cast<bool*>(nullptr)});
}

/// Breaks `text` into lines that begin at kHelpColumn.
std::string Wrap(std::string_view text) {
  std::string out;
  std::size_t column = kHelpColumn;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    if (column + word.size() > kHelpWidth) {
      out += "\n" + std::string(kHelpColumn, ' ');
      column = kHelpColumn;
    } else if (column > kHelpColumn) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return out;
}

std::string HelpLine(const OptionSpec& spec) {
  std::string left = spec.positional ? "  " + spec.value_name : "  ";
  if (!spec.positional) {
    if (spec.short_name != 0) left += fmt::format("-{}, ", spec.short_name);
    left += FlagOf(spec);
    if (!IsSwitch(spec)) left += " " + ValueName(spec);
  }
  left.resize(std::max(left.size() + 2, kHelpColumn), ' ');
  if (left.size() > kHelpColumn) left += "\n" + std::string(kHelpColumn, ' ');
  std::string right = spec.help;
  std::string facts = AllowedText(spec);
  if (const std::string value = ValueText(spec); !spec.positional && !value.empty()) {
    facts += (facts.empty() ? "default " : "; default ") + value;
  }
  if (!facts.empty()) right += " (" + facts + ")";
  return left + Wrap(right) + "\n";
}

/// What CLI11 says, as one line of ours.
Status CliError(const CLI::Error& error) {
  std::string message = error.what();
  std::replace(message.begin(), message.end(), '\n', ' ');
  return base::InvalidArgumentError(message);
}

}  // namespace

OptionTable::OptionTable(std::string command, std::string usage, std::string summary)
    : command_(std::move(command)), usage_(std::move(usage)), summary_(std::move(summary)) {
  Add({.name = "config",
       .value_name = "FILE",
       .help = "read options from this YAML file",
       .target = &config_path_});
}

void OptionTable::Add(OptionSpec spec) {
  for (const OptionSpec& other : specs_)
    HOLMES_CHECK(other.name != spec.name, "two options of one name: " + spec.name);
  specs_.push_back(std::move(spec));
}

std::vector<std::string> OptionTable::Names() const {
  std::vector<std::string> names;
  for (const OptionSpec& spec : specs_) names.push_back(spec.name);
  return names;
}

Status OptionTable::UnknownFlag(std::string_view argument) const {
  if (!argument.starts_with('-')) {
    return base::InvalidArgumentError(
        fmt::format("what is \"{}\" for? usage: holmes {} {}", argument, command_, usage_));
  }
  const std::string_view name = argument.substr(0, argument.find('='));
  std::vector<std::string> flags = {"--help"};
  for (const OptionSpec& spec : specs_) {
    if (!spec.positional) flags.push_back(FlagOf(spec));
  }
  return base::InvalidArgumentError(
      fmt::format("unknown option {}; did you mean {}? `holmes {} --help` lists them",
                  name,
                  base::Nearest(name, flags),
                  command_));
}

StatusOr<OptionTable::Flags> OptionTable::ReadFlags(std::span<const std::string> args) {
  Flags flags;
  try {
    CLI::App parser;
    parser.set_help_flag();
    parser.allow_extras();
    parser.add_flag("-h,--help");
    for (const OptionSpec& spec : specs_) {
      std::string names = spec.positional ? spec.name : FlagOf(spec);
      if (spec.short_name != 0) names = fmt::format("-{},{}", spec.short_name, names);
      CLI::Option* option = IsSwitch(spec) ? parser.add_flag(names) : parser.add_option(names);
      if (!IsSwitch(spec)) option->take_last();
    }
    std::vector<std::string> reversed(args.rbegin(), args.rend());
    parser.parse(reversed);
    if (parser.count("--help") > 0) {
      help_wanted_ = true;
      return flags;
    }
    const std::vector<std::string> rest = parser.remaining();
    const auto unknown = std::find_if(
        rest.begin(), rest.end(), [](const std::string& one) { return one.starts_with('-'); });
    if (!rest.empty()) return UnknownFlag(unknown != rest.end() ? *unknown : rest.front());
    for (const OptionSpec& spec : specs_) {
      const CLI::Option* option = parser.get_option(spec.positional ? spec.name : FlagOf(spec));
      if (option->count() > 0) flags[spec.name] = option->results().back();
    }
  } catch (const CLI::Error& error) {
    return CliError(error);
  }
  return flags;
}

Status OptionTable::ReadFile(const std::string& path) {
  HOLMES_ASSIGN_OR_RETURN(const std::vector<YamlEntry> entries, ReadYamlFile(path));
  std::vector<std::string> keys;
  for (const OptionSpec& spec : specs_) {
    if (spec.name != "config") keys.push_back(KeyOf(spec));
  }
  for (const YamlEntry& entry : entries) {
    const auto found = std::find_if(specs_.begin(), specs_.end(), [&](const OptionSpec& spec) {
      return KeyOf(spec) == entry.key;
    });
    const std::string where = fmt::format("{}:{}", path, entry.line);
    if (found == specs_.end() || found->name == "config") {
      return base::InvalidArgumentError(
          fmt::format("{}: unknown key {}; did you mean {}? `holmes {} --help` lists them",
                      where,
                      entry.key,
                      base::Nearest(entry.key, keys),
                      command_));
    }
    HOLMES_RETURN_IF_ERROR(SetValue(*found, entry.value, fmt::format("{}: {}", where, entry.key)));
  }
  return OkStatus();
}

Status OptionTable::ReadVariables(const Environment& environment,
                                  std::span<const std::string> all_names) {
  std::vector<std::string> known;
  for (const std::string& name : all_names) known.push_back(VariableOfName(name));
  for (const OptionSpec& spec : specs_) known.push_back(VariableOf(spec));
  for (const auto& variable : environment) {
    const std::string& name = variable.first;  // clang 14 captures no structured bindings
    const std::string& value = variable.second;
    if (!name.starts_with(kVariablePrefix) || value.empty() || IsTestVariable(name)) continue;
    const auto found = std::find_if(specs_.begin(), specs_.end(), [&](const OptionSpec& spec) {
      return VariableOf(spec) == name;
    });
    if (found != specs_.end()) {
      HOLMES_RETURN_IF_ERROR(SetValue(*found, value, name));
    } else if (std::find(known.begin(), known.end(), name) == known.end()) {
      return base::InvalidArgumentError(fmt::format(
          "unknown environment variable {}; did you mean {}?", name, base::Nearest(name, known)));
    }
  }
  return OkStatus();
}

Status OptionTable::Parse(std::span<const std::string> args,
                          const Environment& environment,
                          std::span<const std::string> all_names) {
  HOLMES_ASSIGN_OR_RETURN(const Flags flags, ReadFlags(args));
  if (help_wanted_) return OkStatus();
  std::string config;
  if (const auto found = environment.find("HOLMES_CONFIG"); found != environment.end())
    config = found->second;
  if (const auto found = flags.find("config"); found != flags.end()) config = found->second;
  if (!config.empty()) HOLMES_RETURN_IF_ERROR(ReadFile(config));
  HOLMES_RETURN_IF_ERROR(ReadVariables(environment, all_names));
  for (const OptionSpec& spec : specs_) {
    const auto found = flags.find(spec.name);
    if (found != flags.end())
      HOLMES_RETURN_IF_ERROR(
          SetValue(spec, found->second, spec.positional ? spec.value_name : FlagOf(spec)));
  }
  return OkStatus();
}

std::string OptionTable::Help() const {
  std::string out = fmt::format("{}\n\nusage: holmes {} {}\n\n", summary_, command_, usage_);
  for (const OptionSpec& spec : specs_) {
    if (spec.positional) out += HelpLine(spec);
  }
  for (const OptionSpec& spec : specs_) {
    if (!spec.positional) out += HelpLine(spec);
  }
  out +=
      "\nEvery option --some-name is also the environment variable HOLMES_SOME_NAME and the key "
      "some_name of\n"
      "the YAML file; flags win over variables, and variables over the file.\n";
  return out;
}

}  // namespace holmes::app
