/// A model description file (models/*.yaml): how a family of models names its hyperparameters and
/// tensors, in GGUF and in Hugging Face's format, and what its blocks look like. docs/models.md is
/// the manual.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "weights/model_source.h"

namespace holmes::model {

enum class RopeLayout : std::uint8_t { kHalf, kInterleaved };

/// Where a number is found in each format; tried in order.
struct NumberRule {
  std::vector<std::string> gguf;
  std::vector<std::string> hf;
  /// A number, the name of another hyperparameter, or "a / b"; empty = the key must be there.
  std::string fallback;
};

enum class Presence : std::uint8_t { kNone, kOptional, kRequired };

/// Where a tensor is found. For layers, "{layer}" stands for the index. The names end before
/// ".weight" / ".bias".
struct TensorRule {
  std::string gguf;
  std::string hf;
  Presence bias = Presence::kNone;
  /// Another tensor of the file to use when this one is absent ("embedding"); empty = must be
  /// there.
  std::string tied;
};

struct Description {
  std::string name;
  std::vector<std::string> gguf_architectures;
  std::vector<std::string> hf_model_types;
  std::map<std::string, NumberRule, std::less<>> numbers;
  RopeLayout gguf_rope = RopeLayout::kHalf;
  RopeLayout hf_rope = RopeLayout::kHalf;
  std::map<std::string, TensorRule, std::less<>> tensors;        // outside layers
  std::map<std::string, TensorRule, std::less<>> layer_tensors;  // once per layer
  std::string gguf_rope_freqs;  // full name of a tensor of per-frequency divisors; empty = none
  std::string
      hf_wavelength_scaling;  // config.json's rope_type for scaling by wavelength; empty = none
};

/// Errors: kInvalidArgument with line, key and what is allowed; an unknown key is an error that
/// names the nearest.
StatusOr<Description> ParseDescription(std::string_view yaml, std::string_view file_name);

/// The description files that were built in.
StatusOr<std::vector<Description>> BuiltInDescriptions();

/// The description whose `matches` has the source's architecture.
/// Errors: kUnimplemented that names the architecture and those that are known, nearest first.
StatusOr<Description> FindDescription(std::span<const Description> descriptions,
                                      const weights::ModelSource& source);

}  // namespace holmes::model
