#include "app/generation_defaults.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace holmes::app {
namespace {

struct Range {
  double low;
  double high;
  bool low_allowed = true;
};

/// The ranges of the API's fields.
StatusOr<std::optional<double>> Read(const weights::ModelSource& source,
                                     std::string_view key,
                                     Range range) {
  const std::optional<double> value = source.Number(fmt::format("generation_config.{}", key));
  if (!value) return value;
  if (*value > range.low && *value < range.high) return value;
  if (*value == range.high || (range.low_allowed && *value == range.low)) return value;
  return base::DataLossError(
      fmt::format("generation_config.json: {} is {}; it must be {} {} and at most {}; correct the "
                  "file or download it again",
                  key,
                  *value,
                  range.low_allowed ? "at least" : "greater than",
                  range.low,
                  range.high));
}

}  // namespace

StatusOr<server::GenerationDefaults> DefaultsOf(const weights::ModelSource& source) {
  server::GenerationDefaults out;
  HOLMES_ASSIGN_OR_RETURN(out.temperature, Read(source, "temperature", {.low = 0, .high = 2}));
  HOLMES_ASSIGN_OR_RETURN(out.top_p,
                          Read(source, "top_p", {.low = 0, .high = 1, .low_allowed = false}));
  HOLMES_ASSIGN_OR_RETURN(out.min_p, Read(source, "min_p", {.low = 0, .high = 1}));
  HOLMES_ASSIGN_OR_RETURN(
      out.repetition_penalty,
      Read(source, "repetition_penalty", {.low = 0, .high = 10, .low_allowed = false}));
  HOLMES_ASSIGN_OR_RETURN(
      const std::optional<double> top_k,
      Read(source, "top_k", {.low = -1, .high = std::numeric_limits<int>::max()}));
  if (top_k) {
    if (*top_k != std::floor(*top_k)) {
      return base::DataLossError(
          fmt::format("generation_config.json: top_k is {}; it must be a whole number", *top_k));
    }
    out.top_k = static_cast<int>(*top_k);
  }
  return out;
}

void AddGenerationOptions(OptionTable& table, server::GenerationDefaults& values) {
  table.Add({.name = "temperature",
             .help = "where a request does not say: 0 always takes the likeliest token; without "
                     "it the model's own value, as for the next four",
             .target = &values.temperature,
             .low = 0,
             .high = 2});
  table.Add({.name = "top-p",
             .help = "draw from the likeliest tokens that make up this share",
             .target = &values.top_p,
             .low = 0.000001,
             .high = 1});
  table.Add({.name = "top-k",
             .help = "draw from this many likeliest tokens; 0 is all",
             .target = &values.top_k,
             .low = 0,
             .high = std::numeric_limits<int>::max()});
  table.Add({.name = "min-p",
             .help = "drop tokens below this share of the likeliest one's probability",
             .target = &values.min_p,
             .low = 0,
             .high = 1});
  table.Add({.name = "repetition-penalty",
             .help = "divides the logits of tokens that occurred; 1 is off",
             .target = &values.repetition_penalty,
             .low = 0.000001,
             .high = 10});
}

server::GenerationDefaults Over(const server::GenerationDefaults& first,
                                const server::GenerationDefaults& second) {
  const auto pick = [](const auto& a, const auto& b) { return a ? a : b; };
  return {.temperature = pick(first.temperature, second.temperature),
          .top_p = pick(first.top_p, second.top_p),
          .min_p = pick(first.min_p, second.min_p),
          .repetition_penalty = pick(first.repetition_penalty, second.repetition_penalty),
          .top_k = pick(first.top_k, second.top_k)};
}

std::string Describe(const server::GenerationDefaults& defaults) {
  std::string out;
  const auto add = [&out](std::string_view name, const auto& value) {
    if (value) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, *value);
  };
  add("temperature", defaults.temperature);
  add("top_p", defaults.top_p);
  add("top_k", defaults.top_k);
  add("min_p", defaults.min_p);
  add("repetition_penalty", defaults.repetition_penalty);
  return out;
}

}  // namespace holmes::app
