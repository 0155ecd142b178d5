#include "model/rope_scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace holmes::model {
namespace {

/// Scaled by wavelength: long waves are slowed by `factor`, short ones stay, those between are
/// blended.
Status ScaleByWavelength(const weights::ModelSource& source,
                         const std::string& prefix,
                         std::vector<double>& inv_freq) {
  const auto factor = source.Number(prefix + "factor");
  const auto low = source.Number(prefix + "low_freq_factor");
  const auto high = source.Number(prefix + "high_freq_factor");
  const auto original = source.Number(prefix + "original_max_position_embeddings");
  if (!factor || !low || !high || !original || *factor <= 0 || *high <= *low || *low <= 0 ||
      *original <= 0) {
    return base::DataLossError(
        fmt::format("{}* lacks factor, low_freq_factor, high_freq_factor or "
                    "original_max_position_embeddings, or they are out of range",
                    prefix));
  }
  for (double& f : inv_freq) {
    const double waves =
        *original * f / (2 * std::numbers::pi);  // full turns within the original context
    const double blend = std::clamp((waves - *low) / (*high - *low), 0.0, 1.0);
    f = (1 - blend) * f / *factor + blend * f;
  }
  return OkStatus();
}

Status DivideByTensor(const weights::ModelSource& source,
                      const std::string& name,
                      std::vector<double>& inv_freq) {
  const weights::TensorRef* tensor = source.Find(name);
  if (tensor == nullptr) return OkStatus();
  if (tensor->type != holmes::tensor::BlockType::kF32 || tensor->shape.size() != 1 ||
      tensor->shape[0] != static_cast<std::int64_t>(inv_freq.size())) {
    return base::DataLossError(
        fmt::format("tensor '{}' is not {} numbers of type F32", name, inv_freq.size()));
  }
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    float divisor = 0;
    std::memcpy(&divisor, tensor->bytes.data() + i * sizeof(float), sizeof(float));
    if (!std::isfinite(divisor) || divisor <= 0) {
      return base::DataLossError(
          fmt::format("tensor '{}' has {} at {}; positive numbers are expected", name, divisor, i));
    }
    inv_freq[i] /= divisor;
  }
  return OkStatus();
}

Status ScaleLinearly(const weights::ModelSource& source,
                     const std::string& key,
                     std::vector<double>& inv_freq) {
  const double factor = source.Number(key).value_or(0);
  if (!std::isfinite(factor) || factor <= 0)
    return base::DataLossError(fmt::format("{} is missing or not positive", key));
  for (double& f : inv_freq) f /= factor;
  return OkStatus();
}

}  // namespace

StatusOr<Rope> BuildRope(const Description& description,
                         const weights::ModelSource& source,
                         const Hyperparameters& hp) {
  const bool gguf = source.format() == weights::Format::kGguf;
  Rope rope;
  rope.layout = gguf ? description.gguf_rope : description.hf_rope;
  for (int i = 0; i < hp.rotary_dim / 2; ++i) {
    rope.inv_freq.push_back(std::pow(hp.rope_theta, -2.0 * i / hp.rotary_dim));
  }
  std::string type;
  std::string prefix;
  if (gguf) {
    prefix = fmt::format("{}.rope.scaling.", source.architecture());
    type = source.String(prefix + "type").value_or("none");
    if (!description.gguf_rope_freqs.empty()) {
      HOLMES_RETURN_IF_ERROR(DivideByTensor(source, description.gguf_rope_freqs, rope.inv_freq));
    }
  } else {
    for (const char* section : {"rope_scaling.", "rope_parameters."}) {
      for (const char* key : {"rope_type", "type"}) {
        if (!type.empty()) break;
        type = source.String(std::string(section) + key).value_or("");
        prefix = section;
      }
    }
  }
  if (type.empty() || type == "none" || type == "default") return rope;
  if (type == "linear") {
    HOLMES_RETURN_IF_ERROR(ScaleLinearly(source, prefix + "factor", rope.inv_freq));
    return rope;
  }
  if (!gguf && type == description.hf_wavelength_scaling) {
    HOLMES_RETURN_IF_ERROR(ScaleByWavelength(source, prefix, rope.inv_freq));
    return rope;
  }
  return base::UnimplementedError(fmt::format(
      "{}type '{}' is not supported; supported: none, linear and the wavelength-dependent scaling",
      prefix,
      type));
}

}  // namespace holmes::model
