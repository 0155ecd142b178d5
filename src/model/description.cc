#include "model/description.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "base/edit_distance.h"
#include "model/embedded_descriptions.h"

namespace holmes::model {
namespace {

Status At(std::string_view file, const YAML::Node& node, std::string message) {
  return base::InvalidArgumentError(fmt::format("{}:{}: {}", file, node.Mark().line + 1, message));
}

/// Every key of `node` must be in `allowed`.
Status CheckKeys(std::string_view file,
                 const YAML::Node& node,
                 const std::set<std::string>& allowed) {
  if (!node.IsMap()) return At(file, node, "expected a map of keys");
  for (const auto& entry : node) {
    const auto key = entry.first.as<std::string>();
    if (allowed.contains(key)) continue;
    return At(
        file,
        entry.first,
        fmt::format(
            "unknown key '{}'; the nearest known one is '{}'", key, base::Nearest(key, allowed)));
  }
  return OkStatus();
}

/// A string or a list of strings.
std::vector<std::string> Strings(const YAML::Node& node) {
  if (!node) return {};
  if (node.IsSequence()) return node.as<std::vector<std::string>>();
  return {node.as<std::string>()};
}

std::string Text(const YAML::Node& node) { return node ? node.as<std::string>() : ""; }

StatusOr<NumberRule> ParseNumber(std::string_view file, const YAML::Node& node) {
  HOLMES_RETURN_IF_ERROR(CheckKeys(file, node, {"gguf", "hf", "default"}));
  return NumberRule{Strings(node["gguf"]), Strings(node["hf"]), Text(node["default"])};
}

StatusOr<TensorRule> ParseTensor(std::string_view file, const YAML::Node& node) {
  HOLMES_RETURN_IF_ERROR(CheckKeys(file, node, {"gguf", "hf", "bias", "tied"}));
  TensorRule rule{Text(node["gguf"]), Text(node["hf"]), Presence::kNone, Text(node["tied"])};
  const std::string bias = Text(node["bias"]);
  if (bias == "optional")
    rule.bias = Presence::kOptional;
  else if (bias == "required")
    rule.bias = Presence::kRequired;
  else if (!bias.empty())
    return At(file, node, fmt::format("bias is '{}'; allowed: optional, required", bias));
  return rule;
}

StatusOr<RopeLayout> ParseRope(std::string_view file, const YAML::Node& node) {
  const std::string text = Text(node);
  if (text == "half") return RopeLayout::kHalf;
  if (text == "interleaved") return RopeLayout::kInterleaved;
  return At(file, node, fmt::format("rope layout is '{}'; allowed: half, interleaved", text));
}

const std::set<std::string> kNumbers = {"num_layers",
                                        "hidden_size",
                                        "intermediate_size",
                                        "num_heads",
                                        "num_kv_heads",
                                        "head_dim",
                                        "rotary_dim",
                                        "context_tokens",
                                        "norm_eps",
                                        "rope_theta",
                                        "window_tokens"};
const std::set<std::string> kTensors = {"embedding", "output_norm", "output"};
const std::set<std::string> kLayerTensors = {"attention_norm",
                                             "query",
                                             "key",
                                             "value",
                                             "attention_output",
                                             "feed_forward_norm",
                                             "gate",
                                             "up",
                                             "down"};

Status ParseTensors(std::string_view file,
                    const YAML::Node& node,
                    const std::set<std::string>& names,
                    std::map<std::string, TensorRule, std::less<>>& out) {
  for (const std::string& name : names) {
    if (!node[name]) return At(file, node, fmt::format("'{}' is missing", name));
    HOLMES_ASSIGN_OR_RETURN(out[name], ParseTensor(file, node[name]));
  }
  return OkStatus();
}

StatusOr<Description> Parse(std::string_view file, const YAML::Node& root) {
  std::set<std::string> keys = kTensors;
  keys.insert(
      {"name", "matches", "hyperparameters", "rope_layout", "rope_freqs", "rope_scaling", "layer"});
  HOLMES_RETURN_IF_ERROR(CheckKeys(file, root, keys));
  Description out;
  out.name = Text(root["name"]);
  HOLMES_RETURN_IF_ERROR(CheckKeys(file, root["matches"], {"gguf", "hf"}));
  out.gguf_architectures = Strings(root["matches"]["gguf"]);
  out.hf_model_types = Strings(root["matches"]["hf"]);
  HOLMES_RETURN_IF_ERROR(CheckKeys(file, root["hyperparameters"], kNumbers));
  for (const auto& entry : root["hyperparameters"]) {
    HOLMES_ASSIGN_OR_RETURN(out.numbers[entry.first.as<std::string>()],
                            ParseNumber(file, entry.second));
  }
  HOLMES_RETURN_IF_ERROR(CheckKeys(file, root["rope_layout"], {"gguf", "hf"}));
  HOLMES_ASSIGN_OR_RETURN(out.gguf_rope, ParseRope(file, root["rope_layout"]["gguf"]));
  HOLMES_ASSIGN_OR_RETURN(out.hf_rope, ParseRope(file, root["rope_layout"]["hf"]));
  if (root["rope_freqs"]) {
    HOLMES_RETURN_IF_ERROR(CheckKeys(file, root["rope_freqs"], {"gguf"}));
    out.gguf_rope_freqs = Text(root["rope_freqs"]["gguf"]);
  }
  if (root["rope_scaling"]) {
    HOLMES_RETURN_IF_ERROR(CheckKeys(file, root["rope_scaling"], {"wavelength"}));
    out.hf_wavelength_scaling = Text(root["rope_scaling"]["wavelength"]);
  }
  HOLMES_RETURN_IF_ERROR(ParseTensors(file, root, kTensors, out.tensors));
  HOLMES_RETURN_IF_ERROR(CheckKeys(file, root["layer"], kLayerTensors));
  HOLMES_RETURN_IF_ERROR(ParseTensors(file, root["layer"], kLayerTensors, out.layer_tensors));
  return out;
}

}  // namespace

StatusOr<Description> ParseDescription(std::string_view yaml, std::string_view file_name) {
  try {
    return Parse(file_name, YAML::Load(std::string(yaml)));
  } catch (const YAML::Exception& error) {
    return base::InvalidArgumentError(fmt::format("{}: {}", file_name, error.what()));
  }
}

StatusOr<std::vector<Description>> BuiltInDescriptions() {
  std::vector<Description> out;
  for (const EmbeddedFile& file : EmbeddedDescriptions()) {
    HOLMES_ASSIGN_OR_RETURN(out.emplace_back(), ParseDescription(file.text, file.name));
  }
  return out;
}

StatusOr<Description> FindDescription(std::span<const Description> descriptions,
                                      const weights::ModelSource& source) {
  std::set<std::string> known;
  for (const Description& description : descriptions) {
    const auto& names = source.format() == weights::Format::kGguf ? description.gguf_architectures
                                                                  : description.hf_model_types;
    if (std::find(names.begin(), names.end(), source.architecture()) != names.end())
      return description;
    known.insert(names.begin(), names.end());
  }
  return base::UnimplementedError(
      fmt::format("architecture '{}' is not supported; the nearest supported one is '{}' (all: {})",
                  source.architecture(),
                  base::Nearest(source.architecture(), known),
                  fmt::join(known, ", ")));
}

}  // namespace holmes::model
