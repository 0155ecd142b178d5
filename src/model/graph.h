/// A model as a list of operations on stored tensors: what a description file and a model source
/// make together, and what a back end reads. Weights are borrowed views of the ModelSource, which
/// must outlive the graph. Immutable after BuildGraph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "model/description.h"
#include "weights/model_source.h"

namespace holmes::model {

/// y = x W^T + b. weight [out, in]; bias [out] or null.
struct Linear {
  const weights::TensorRef* weight = nullptr;
  const weights::TensorRef* bias = nullptr;
  std::int64_t out_features() const { return weight->shape[0]; }
  std::int64_t in_features() const { return weight->shape[1]; }
};

/// Root mean square norm; weight [hidden_size].
struct Norm {
  const weights::TensorRef* weight = nullptr;
  float eps = 1e-5F;
};

/// Layers that share block tables: equal KV shape and window.
struct KvGroup {
  int num_layers = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int window_tokens = 0;  // 0 = full attention
};

/// x += O(attention(rope(Q(norm x)), rope(K(norm x)), V(norm x)))
struct AttentionOp {
  Norm norm;
  Linear query;   // [num_heads * head_dim, hidden]
  Linear key;     // [num_kv_heads * head_dim, hidden]
  Linear value;   // [num_kv_heads * head_dim, hidden]
  Linear output;  // [hidden, num_heads * head_dim]
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  float scale = 1.0F;
  int window_tokens = 0;
  int kv_group = 0;
  int layer_in_group = 0;
};

/// x += down(silu(gate(norm x)) * up(norm x))
struct GatedFeedForwardOp {
  Norm norm;
  Linear gate;  // [intermediate, hidden]
  Linear up;    // [intermediate, hidden]
  Linear down;  // [hidden, intermediate]
};

using Op = std::variant<AttentionOp, GatedFeedForwardOp>;

/// Radians per position and the factor on cosine and sine.
struct Rope {
  RopeLayout layout = RopeLayout::kHalf;
  std::vector<double> inv_freq;  // [rotary_dim / 2]
  double factor = 1.0;
};

struct Graph {
  std::string architecture;
  int vocab_size = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int context_tokens = 0;
  Rope rope;
  Linear embedding;  // [vocab, hidden]; rows are looked up
  std::vector<Op> ops;
  Norm output_norm;
  Linear output;  // [vocab, hidden]; the embedding's own tensor where the model ties them
  std::vector<KvGroup> kv_groups;
  bool tied_output() const { return output.weight == embedding.weight; }
};

/// Finds every tensor and number that the description names and checks all shapes against each
/// other. Errors: kDataLoss or kInvalidArgument that names the tensor or key, what was found and
/// what was expected.
StatusOr<Graph> BuildGraph(const Description& description, const weights::ModelSource& source);

}  // namespace holmes::model
