/// A model source made of plain maps, for tests of the graph builder.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weights/model_source.h"

namespace holmes::model {

class FakeSource final : public weights::ModelSource {
 public:
  weights::Format format_ = weights::Format::kSafetensors;
  std::string architecture_ = "tiny";
  std::map<std::string, double, std::less<>> numbers_;
  std::map<std::string, std::string, std::less<>> strings_;
  std::vector<weights::TensorRef> tensors_;

  void AddTensor(const std::string& name, std::vector<std::int64_t> shape) {
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n *= d;
    data_.push_back(std::make_unique<std::vector<float>>(static_cast<std::size_t>(n), 1.0F));
    tensors_.push_back(
        {name, tensor::BlockType::kF32, std::move(shape), std::as_bytes(std::span(*data_.back()))});
  }

  weights::Format format() const override { return format_; }
  std::string_view architecture() const override { return architecture_; }
  std::string_view name() const override { return "fake"; }
  std::span<const weights::TensorRef> tensors() const override { return tensors_; }
  const weights::TensorRef* Find(std::string_view name) const override {
    for (const weights::TensorRef& tensor : tensors_) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }
  std::optional<double> Number(std::string_view key) const override { return Get(numbers_, key); }
  std::optional<bool> Bool(std::string_view) const override { return std::nullopt; }
  std::optional<std::string> String(std::string_view key) const override {
    return Get(strings_, key);
  }
  std::optional<std::vector<double>> Numbers(std::string_view) const override {
    return std::nullopt;
  }
  StatusOr<text::VocabSpec> Vocab() const override { return text::VocabSpec{}; }
  std::string_view chat_template() const override { return ""; }
  std::vector<TokenId> EndOfGeneration() const override { return {}; }

 private:
  template <typename Map>
  static std::optional<typename Map::mapped_type> Get(const Map& map, std::string_view key) {
    const auto found = map.find(key);
    if (found == map.end()) return std::nullopt;
    return found->second;
  }
  std::vector<std::unique_ptr<std::vector<float>>> data_;
};

/// The names of a two-layer model of the described shape: hidden 8, 4 query heads and 2 KV heads of
/// 2, intermediate 12, 16 tokens.
inline FakeSource MakeTinySource(const std::string& architecture, bool biases) {
  FakeSource source;
  source.architecture_ = architecture;
  source.numbers_ = {{"num_hidden_layers", 2},
                     {"hidden_size", 8},
                     {"intermediate_size", 12},
                     {"num_attention_heads", 4},
                     {"num_key_value_heads", 2},
                     {"max_position_embeddings", 64},
                     {"rms_norm_eps", 1e-5},
                     {"rope_theta", 1e4}};
  source.AddTensor("model.embed_tokens.weight", {16, 8});
  source.AddTensor("model.norm.weight", {8});
  for (int layer = 0; layer < 2; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    source.AddTensor(at + "input_layernorm.weight", {8});
    source.AddTensor(at + "post_attention_layernorm.weight", {8});
    const std::pair<const char*, std::int64_t> projections[] = {{"q", 8}, {"k", 4}, {"v", 4}};
    for (const auto& [name, out] : projections) {
      source.AddTensor(at + "self_attn." + name + "_proj.weight", {out, 8});
      if (biases) source.AddTensor(at + "self_attn." + name + "_proj.bias", {out});
    }
    source.AddTensor(at + "self_attn.o_proj.weight", {8, 8});
    source.AddTensor(at + "mlp.gate_proj.weight", {12, 8});
    source.AddTensor(at + "mlp.up_proj.weight", {12, 8});
    source.AddTensor(at + "mlp.down_proj.weight", {8, 12});
  }
  return source;
}

}  // namespace holmes::model
