#include "app/option_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "base/edit_distance.h"

namespace holmes::app {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<bool> ParseBool(std::string_view text) {
  const std::string low = Lower(text);
  if (low == "true" || low == "yes" || low == "on" || low == "1") return true;
  if (low == "false" || low == "no" || low == "off" || low == "0") return false;
  return std::nullopt;
}

Status Refused(const OptionSpec& spec,
               std::string_view text,
               std::string_view where,
               std::string_view kind) {
  const std::string allowed = AllowedText(spec);
  return base::InvalidArgumentError(fmt::format(
      "{}: \"{}\" is not {}{}{}", where, text, kind, allowed.empty() ? "" : " of ", allowed));
}

/// Reads a number into `*target` when it lies in the option's range.
template <typename T>
Status SetNumber(const OptionSpec& spec,
                 std::string_view text,
                 std::string_view where,
                 auto* target) {
  const std::optional<T> value = ParseNumber<T>(text);
  const auto in_range = [&](T v) {
    return static_cast<double>(v) >= spec.low && static_cast<double>(v) <= spec.high;
  };
  if (!value || !in_range(*value))
    return Refused(spec, text, where, std::is_integral_v<T> ? "a whole number" : "a number");
  *target = *value;
  return OkStatus();
}

Status SetText(const OptionSpec& spec,
               std::string_view text,
               std::string_view where,
               std::string* target) {
  if (!spec.choices.empty() &&
      std::find(spec.choices.begin(), spec.choices.end(), text) == spec.choices.end()) {
    return base::InvalidArgumentError(fmt::format("{}: \"{}\" is not {}; did you mean {}?",
                                                  where,
                                                  text,
                                                  AllowedText(spec),
                                                  base::Nearest(text, spec.choices)));
  }
  *target = std::string(text);
  return OkStatus();
}

std::string NumberText(double value) { return fmt::format("{}", value); }

}  // namespace

bool IsSwitch(const OptionSpec& spec) { return std::holds_alternative<bool*>(spec.target); }

std::string FlagOf(const OptionSpec& spec) { return "--" + spec.name; }

std::string VariableOf(const OptionSpec& spec) {
  std::string out = "HOLMES_" + spec.name;
  for (char& c : out)
    c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

std::string KeyOf(const OptionSpec& spec) {
  std::string out = spec.name;
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

std::string ValueName(const OptionSpec& spec) {
  if (!spec.value_name.empty()) return spec.value_name;
  return std::visit(Overloaded{[](const std::string*) { return "TEXT"; },
                               [](const bool*) { return ""; },
                               [](const auto*) { return "N"; }},
                    spec.target);
}

std::string AllowedText(const OptionSpec& spec) {
  if (!spec.choices.empty()) return fmt::format("one of {}", fmt::join(spec.choices, ", "));
  const bool low = std::isfinite(spec.low);
  const bool high = std::isfinite(spec.high);
  if (low && high) return fmt::format("{} to {}", spec.low, spec.high);
  if (low) return fmt::format("at least {}", spec.low);
  if (high) return fmt::format("at most {}", spec.high);
  return "";
}

std::string ValueText(const OptionSpec& spec) {
  return std::visit(Overloaded{[](const std::string* value) { return *value; },
                               [](const bool* value) { return std::string(*value ? "on" : "off"); },
                               [](const double* value) { return NumberText(*value); },
                               [](const int* value) { return fmt::format("{}", *value); },
                               [](const std::int64_t* value) { return fmt::format("{}", *value); },
                               []<typename T>(const std::optional<T>* value) {
                                 return value->has_value() ? fmt::format("{}", **value)
                                                           : std::string();
                               }},
                    spec.target);
}

Status SetValue(const OptionSpec& spec, std::string_view text, std::string_view where) {
  return std::visit(
      Overloaded{
          [&](std::string* target) { return SetText(spec, text, where, target); },
          [&](bool* target) {
            const std::optional<bool> value = ParseBool(text);
            if (!value) return Refused(spec, text, where, "true or false");
            *target = *value;
            return OkStatus();
          },
          [&](int* target) { return SetNumber<int>(spec, text, where, target); },
          [&](std::int64_t* target) { return SetNumber<std::int64_t>(spec, text, where, target); },
          [&](double* target) { return SetNumber<double>(spec, text, where, target); },
          [&]<typename T>(std::optional<T>* target) {
            return SetNumber<T>(spec, text, where, target);
          }},
      spec.target);
}

}  // namespace holmes::app
