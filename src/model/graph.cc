#include "model/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "model/hyperparameters.h"
#include "model/rope_scaling.h"

namespace holmes::model {
namespace {

/// Resolves the rules of one description against one source.
class Builder {
 public:
  Builder(const Description& description, const weights::ModelSource& source)
      : description_(description),
        source_(source),
        gguf_(source.format() == weights::Format::kGguf) {}

  StatusOr<Graph> Build() {
    HOLMES_ASSIGN_OR_RETURN(hp_, ReadHyperparameters(description_, source_));
    Graph graph;
    graph.architecture = std::string(source_.architecture());
    graph.hidden_size = hp_.hidden_size;
    graph.intermediate_size = hp_.intermediate_size;
    graph.context_tokens = hp_.context_tokens;
    HOLMES_ASSIGN_OR_RETURN(graph.rope, BuildRope(description_, source_, hp_));
    HOLMES_RETURN_IF_ERROR(AddEnds(graph));
    graph.kv_groups = {{hp_.num_layers, hp_.num_kv_heads, hp_.head_dim, hp_.window_tokens}};
    for (int layer = 0; layer < hp_.num_layers; ++layer)
      HOLMES_RETURN_IF_ERROR(AddLayer(graph, layer));
    return graph;
  }

 private:
  std::string Name(const TensorRule& rule, int layer) const {
    std::string name = gguf_ ? rule.gguf : rule.hf;
    const auto at = name.find("{layer}");
    if (at != std::string::npos) name.replace(at, 7, std::to_string(layer));
    return name;
  }

  /// `shape` uses -1 for "any".
  StatusOr<const weights::TensorRef*> Tensor(const std::string& name,
                                             const std::vector<std::int64_t>& shape) const {
    const weights::TensorRef* tensor = source_.Find(name);
    if (tensor == nullptr) {
      return base::DataLossError(
          fmt::format("tensor '{}' is missing; a '{}' model needs it", name, description_.name));
    }
    bool fits = tensor->shape.size() == shape.size();
    for (std::size_t i = 0; fits && i < shape.size(); ++i)
      fits = shape[i] < 0 || shape[i] == tensor->shape[i];
    if (!fits) {
      return base::DataLossError(
          fmt::format("tensor '{}' has the shape [{}], but the hyperparameters ask for [{}]",
                      name,
                      fmt::join(tensor->shape, ", "),
                      fmt::join(shape, ", ")));
    }
    return tensor;
  }

  StatusOr<Linear> LinearOf(const TensorRule& rule,
                            int layer,
                            std::int64_t out,
                            std::int64_t in) const {
    const std::string name = Name(rule, layer);
    Linear linear;
    HOLMES_ASSIGN_OR_RETURN(linear.weight, Tensor(name + ".weight", {out, in}));
    const bool there = source_.Find(name + ".bias") != nullptr;
    if (there && rule.bias == Presence::kNone) {
      return base::UnimplementedError(
          fmt::format("tensor '{}.bias' is there, but a '{}' model has no bias in this place",
                      name,
                      description_.name));
    }
    if (there || rule.bias == Presence::kRequired) {
      HOLMES_ASSIGN_OR_RETURN(linear.bias, Tensor(name + ".bias", {out}));
    }
    return linear;
  }

  StatusOr<Norm> NormOf(const TensorRule& rule, int layer) const {
    HOLMES_ASSIGN_OR_RETURN(const weights::TensorRef* weight,
                            Tensor(Name(rule, layer) + ".weight", {hp_.hidden_size}));
    return Norm{weight, static_cast<float>(hp_.norm_eps)};
  }

  Status AddEnds(Graph& graph) const {
    HOLMES_ASSIGN_OR_RETURN(graph.embedding,
                            LinearOf(description_.tensors.at("embedding"), 0, -1, hp_.hidden_size));
    const std::int64_t vocab = graph.embedding.out_features();
    if (vocab < 1 || vocab > (1 << 24)) {
      return base::DataLossError(
          fmt::format("the embedding has {} rows; between 1 and {} are supported", vocab, 1 << 24));
    }
    graph.vocab_size = static_cast<int>(vocab);
    HOLMES_ASSIGN_OR_RETURN(graph.output_norm, NormOf(description_.tensors.at("output_norm"), 0));
    const TensorRule& output = description_.tensors.at("output");
    const bool tied =
        !output.tied.empty() && (source_.Find(Name(output, 0) + ".weight") == nullptr ||
                                 source_.Bool("tie_word_embeddings").value_or(false));
    if (tied) {
      graph.output = graph.embedding;
      return OkStatus();
    }
    HOLMES_ASSIGN_OR_RETURN(graph.output, LinearOf(output, 0, vocab, hp_.hidden_size));
    return OkStatus();
  }

  Status AddLayer(Graph& graph, int layer) const {
    const auto rule = [&](std::string_view name) -> const TensorRule& {
      return description_.layer_tensors.find(name)->second;
    };
    const std::int64_t hidden = hp_.hidden_size;
    const std::int64_t heads = static_cast<std::int64_t>(hp_.num_heads) * hp_.head_dim;
    const std::int64_t kv_heads = static_cast<std::int64_t>(hp_.num_kv_heads) * hp_.head_dim;
    AttentionOp attention;
    HOLMES_ASSIGN_OR_RETURN(attention.norm, NormOf(rule("attention_norm"), layer));
    HOLMES_ASSIGN_OR_RETURN(attention.query, LinearOf(rule("query"), layer, heads, hidden));
    HOLMES_ASSIGN_OR_RETURN(attention.key, LinearOf(rule("key"), layer, kv_heads, hidden));
    HOLMES_ASSIGN_OR_RETURN(attention.value, LinearOf(rule("value"), layer, kv_heads, hidden));
    HOLMES_ASSIGN_OR_RETURN(attention.output,
                            LinearOf(rule("attention_output"), layer, hidden, heads));
    attention.num_heads = hp_.num_heads;
    attention.num_kv_heads = hp_.num_kv_heads;
    attention.head_dim = hp_.head_dim;
    attention.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(hp_.head_dim)));
    attention.window_tokens = hp_.window_tokens;
    attention.kv_group = 0;
    attention.layer_in_group = layer;
    graph.ops.emplace_back(attention);
    GatedFeedForwardOp feed_forward;
    HOLMES_ASSIGN_OR_RETURN(feed_forward.norm, NormOf(rule("feed_forward_norm"), layer));
    HOLMES_ASSIGN_OR_RETURN(feed_forward.gate,
                            LinearOf(rule("gate"), layer, hp_.intermediate_size, hidden));
    HOLMES_ASSIGN_OR_RETURN(feed_forward.up,
                            LinearOf(rule("up"), layer, hp_.intermediate_size, hidden));
    HOLMES_ASSIGN_OR_RETURN(feed_forward.down,
                            LinearOf(rule("down"), layer, hidden, hp_.intermediate_size));
    graph.ops.emplace_back(feed_forward);
    return OkStatus();
  }

  const Description& description_;
  const weights::ModelSource& source_;
  const bool gguf_;
  Hyperparameters hp_;
};

}  // namespace

StatusOr<Graph> BuildGraph(const Description& description, const weights::ModelSource& source) {
  return Builder(description, source).Build();
}

}  // namespace holmes::model
