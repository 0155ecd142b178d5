/// A model on disk, whatever its format: named tensors, hyperparameters under the format's own
/// keys, the vocabulary and the chat template.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "tensor/block_type.h"
#include "text/vocab_spec.h"

namespace holmes::weights {

enum class Format : std::uint8_t { kGguf, kSafetensors };

/// A stored tensor. `bytes` borrows from the ModelSource's file map.
struct TensorRef {
  std::string name;
  tensor::BlockType type = tensor::BlockType::kF32;
  /// Outermost first: a linear layer's weight is [out, in]; blocks run along the last dimension.
  std::vector<std::int64_t> shape;
  /// Any alignment: GGUF aligns tensors (to 32 bytes unless the file says otherwise), safetensors
  /// need not.
  std::span<const std::byte> bytes;
};

/// Immutable after Open; thread-safe. Tensors stay valid as long as the source lives.
class ModelSource {
 public:
  /// `path` is a .gguf file or a folder with config.json and *.safetensors.
  /// Errors: kNotFound, kPermissionDenied, kDataLoss (truncated or corrupt: says file, offset and
  /// what was expected), kUnimplemented (a version, type or feature that is not supported, by
  /// name). Every length, offset, type and name is checked here, so that readers need not.
  static StatusOr<std::unique_ptr<const ModelSource>> Open(const std::string& path);
  virtual ~ModelSource() = default;

  virtual Format format() const = 0;
  /// GGUF's general.architecture, or config.json's model_type.
  virtual std::string_view architecture() const = 0;
  /// GGUF's general.name, or the folder's name.
  virtual std::string_view name() const = 0;
  virtual std::span<const TensorRef> tensors() const = 0;
  /// Null when absent.
  virtual const TensorRef* Find(std::string_view tensor_name) const = 0;

  /// A hyperparameter: GGUF key ("llama.block_count") or config.json path ("num_hidden_layers",
  /// "rope_scaling.factor"; "generation_config.top_p" is of generation_config.json). Empty when
  /// absent or of another kind.
  virtual std::optional<double> Number(std::string_view key) const = 0;
  virtual std::optional<bool> Bool(std::string_view key) const = 0;
  virtual std::optional<std::string> String(std::string_view key) const = 0;
  virtual std::optional<std::vector<double>> Numbers(std::string_view key) const = 0;

  virtual StatusOr<text::VocabSpec> Vocab() const = 0;
  /// Jinja source; empty when the model has none.
  virtual std::string_view chat_template() const = 0;
  /// The union of all end-of-generation ids: config, generation_config, tokenizer. Ascending.
  virtual std::vector<TokenId> EndOfGeneration() const = 0;
};

}  // namespace holmes::weights
