/// A graph with its weights packed for the CPU's kernels. Read-only after Pack; independent of the
/// ModelSource.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "base/status.h"
#include "kernels/linear/packed_matrix.h"
#include "kernels/rope/rope.h"
#include "kernels/team/team.h"
#include "model/graph.h"

namespace holmes::exec {

struct PackedLinear {
  kernels::PackedMatrix weight;
  std::vector<float> bias;  // empty = none
  const float* bias_or_null() const { return bias.empty() ? nullptr : bias.data(); }
};

struct PackedNorm {
  std::vector<float> weight;
  float eps = 0;
};

struct PackedAttention {
  PackedNorm norm;
  PackedLinear query, key, value, output;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  float scale = 1.0F;
  int window_tokens = 0;
  int kv_group = 0;
  int layer_in_group = 0;
};

struct PackedFeedForward {
  PackedNorm norm;
  PackedLinear gate, up, down;
};

using PackedOp = std::variant<PackedAttention, PackedFeedForward>;

struct PackedModel {
  int vocab_size = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int query_size = 0;  // widest num_heads * head_dim
  int kv_size = 0;     // widest num_kv_heads * head_dim
  PackedLinear embedding;
  std::vector<PackedOp> ops;
  PackedNorm output_norm;
  std::optional<PackedLinear> output;  // empty where the embedding is used again
  kernels::RopeLayout rope_layout = kernels::RopeLayout::kHalf;
  std::optional<kernels::RopeTable> rope;

  const PackedLinear& output_or_embedding() const { return output ? *output : embedding; }

  /// Errors: those of PackedMatrix::Pack, with the tensor's name.
  static StatusOr<std::unique_ptr<PackedModel>> Pack(
      const model::Graph& graph,
      int context_tokens,
      kernels::Isa isa,
      kernels::Team& team,
      const std::function<void(int, int)>& on_packed = nullptr);
};

/// What the packed weights of `graph` will take, before anything is packed. Bytes.
std::int64_t EstimateWeightBytes(const model::Graph& graph);

}  // namespace holmes::exec
