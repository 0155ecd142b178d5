/// Cutting text into the pieces that a tokenizer merges within.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/vocab_spec.h"

namespace holmes::text {

/// What GGUF's tokenizer.ggml.pre stands for.
struct NamedPreTokenizer {
  std::vector<PreTokenStep> steps;
  std::string normalization;
  bool ignore_merges = false;
};

/// Errors: kUnimplemented that names the value and the nearest known one.
StatusOr<NamedPreTokenizer> PreTokenizerByName(std::string_view gguf_pre);

/// Immutable after Create; thread-safe.
class PreTokenizer {
 public:
  /// Errors: kInvalidArgument with the pattern, the offset and the reason when a regex does not
  /// compile.
  static StatusOr<std::unique_ptr<const PreTokenizer>> Create(
      const std::vector<PreTokenStep>& steps);
  virtual ~PreTokenizer() = default;
  /// Pieces of valid UTF-8 text, in order; views into it.
  virtual void Split(std::string_view text, std::vector<std::string_view>& pieces) const = 0;
};

}  // namespace holmes::text
