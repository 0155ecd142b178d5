#include "model/hyperparameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>

namespace holmes::model {
namespace {

class Reader {
 public:
  Reader(const Description& description, const weights::ModelSource& source)
      : description_(description), source_(source) {}

  StatusOr<double> Number(std::string_view name, int depth = 0) const {
    const auto found = description_.numbers.find(name);
    if (found == description_.numbers.end() || depth > 4) {
      return base::InvalidArgumentError(
          fmt::format("description '{}' has no rule for '{}'", description_.name, name));
    }
    const NumberRule& rule = found->second;
    std::vector<std::string> keys =
        source_.format() == weights::Format::kGguf ? rule.gguf : rule.hf;
    for (std::string& key : keys) {
      const auto at = key.find("{arch}");
      if (at != std::string::npos) key.replace(at, 6, source_.architecture());
      if (const auto value = source_.Number(key)) return *value;
    }
    if (!rule.fallback.empty()) return Fallback(rule.fallback, depth);
    return base::DataLossError(
        fmt::format("the model does not say its {} (looked for {})", name, fmt::join(keys, ", ")));
  }

  Status Whole(std::string_view name, int low, int high, int& out) const {
    HOLMES_ASSIGN_OR_RETURN(const double value, Number(name));
    if (!(value >= low && value <= high) || value != std::floor(value)) {
      return base::DataLossError(fmt::format(
          "{} is {}; a whole number from {} to {} is expected", name, value, low, high));
    }
    out = static_cast<int>(value);
    return OkStatus();
  }

  Status Positive(std::string_view name, double& out) const {
    HOLMES_ASSIGN_OR_RETURN(out, Number(name));
    if (std::isfinite(out) && out > 0) return OkStatus();
    return base::DataLossError(fmt::format("{} is {}; a positive number is expected", name, out));
  }

 private:
  /// A literal, a name, or "name / name".
  StatusOr<double> Fallback(std::string_view text, int depth) const {
    double literal = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), literal);
    if (error == std::errc() && end == text.data() + text.size()) return literal;
    const auto slash = text.find(" / ");
    if (slash == std::string_view::npos) return Number(text, depth + 1);
    HOLMES_ASSIGN_OR_RETURN(const double above, Number(text.substr(0, slash), depth + 1));
    HOLMES_ASSIGN_OR_RETURN(const double below, Number(text.substr(slash + 3), depth + 1));
    return above / below;
  }

  const Description& description_;
  const weights::ModelSource& source_;
};

}  // namespace

StatusOr<Hyperparameters> ReadHyperparameters(const Description& description,
                                              const weights::ModelSource& source) {
  const Reader reader(description, source);
  Hyperparameters hp;
  HOLMES_RETURN_IF_ERROR(reader.Whole("num_layers", 1, 1024, hp.num_layers));
  HOLMES_RETURN_IF_ERROR(reader.Whole("hidden_size", 1, 1 << 20, hp.hidden_size));
  HOLMES_RETURN_IF_ERROR(reader.Whole("intermediate_size", 1, 1 << 22, hp.intermediate_size));
  HOLMES_RETURN_IF_ERROR(reader.Whole("num_heads", 1, 4096, hp.num_heads));
  HOLMES_RETURN_IF_ERROR(reader.Whole("num_kv_heads", 1, 4096, hp.num_kv_heads));
  HOLMES_RETURN_IF_ERROR(reader.Whole("head_dim", 1, 1024, hp.head_dim));
  HOLMES_RETURN_IF_ERROR(reader.Whole("rotary_dim", 2, 1024, hp.rotary_dim));
  HOLMES_RETURN_IF_ERROR(reader.Whole("context_tokens", 1, 1 << 24, hp.context_tokens));
  if (description.numbers.contains("window_tokens")) {
    HOLMES_RETURN_IF_ERROR(reader.Whole("window_tokens", 0, 1 << 24, hp.window_tokens));
  }
  HOLMES_RETURN_IF_ERROR(reader.Positive("norm_eps", hp.norm_eps));
  HOLMES_RETURN_IF_ERROR(reader.Positive("rope_theta", hp.rope_theta));
  if (hp.num_heads % hp.num_kv_heads != 0) {
    return base::DataLossError(fmt::format(
        "{} query heads cannot share {} KV heads evenly", hp.num_heads, hp.num_kv_heads));
  }
  if (hp.rotary_dim > hp.head_dim || hp.rotary_dim % 2 != 0) {
    return base::DataLossError(
        fmt::format("rotary_dim is {}; an even number up to head_dim = {} is expected",
                    hp.rotary_dim,
                    hp.head_dim));
  }
  return hp;
}

}  // namespace holmes::model
