#include "exec/packed_model.h"

#include <algorithm>
#include <string>

#include "tensor/dequantize.h"

namespace holmes::exec {
namespace {

kernels::WeightView ViewOf(const weights::TensorRef& weight) {
  return {.type = weight.type, .n = weight.shape[0], .k = weight.shape[1], .bytes = weight.bytes};
}

/// Packs tensors one by one.
class Packer {
 public:
  Packer(kernels::Isa isa, kernels::Team& team) : isa_(isa), team_(team) {}

  StatusOr<PackedLinear> Linear(const model::Linear& linear) const {
    const weights::TensorRef& weight = *linear.weight;
    PackedLinear out;
    auto packed = kernels::PackedMatrix::Pack(ViewOf(weight), isa_, &team_);
    if (!packed.ok()) return packed.status().WithContext("tensor '" + weight.name + "'");
    out.weight = *std::move(packed);
    if (linear.bias != nullptr) {
      HOLMES_ASSIGN_OR_RETURN(out.bias, Vector(*linear.bias));
    }
    return out;
  }

  StatusOr<PackedNorm> Norm(const model::Norm& norm) const {
    PackedNorm out;
    HOLMES_ASSIGN_OR_RETURN(out.weight, Vector(*norm.weight));
    out.eps = norm.eps;
    return out;
  }

  StatusOr<PackedOp> Op(const model::AttentionOp& op) const {
    PackedAttention out;
    HOLMES_ASSIGN_OR_RETURN(out.norm, Norm(op.norm));
    HOLMES_ASSIGN_OR_RETURN(out.query, Linear(op.query));
    HOLMES_ASSIGN_OR_RETURN(out.key, Linear(op.key));
    HOLMES_ASSIGN_OR_RETURN(out.value, Linear(op.value));
    HOLMES_ASSIGN_OR_RETURN(out.output, Linear(op.output));
    out.num_heads = op.num_heads;
    out.num_kv_heads = op.num_kv_heads;
    out.head_dim = op.head_dim;
    out.scale = op.scale;
    out.window_tokens = op.window_tokens;
    out.kv_group = op.kv_group;
    out.layer_in_group = op.layer_in_group;
    return PackedOp(std::move(out));
  }

  StatusOr<PackedOp> Op(const model::GatedFeedForwardOp& op) const {
    PackedFeedForward out;
    HOLMES_ASSIGN_OR_RETURN(out.norm, Norm(op.norm));
    HOLMES_ASSIGN_OR_RETURN(out.gate, Linear(op.gate));
    HOLMES_ASSIGN_OR_RETURN(out.up, Linear(op.up));
    HOLMES_ASSIGN_OR_RETURN(out.down, Linear(op.down));
    return PackedOp(std::move(out));
  }

 private:
  StatusOr<std::vector<float>> Vector(const weights::TensorRef& tensor) const {
    std::vector<float> out(static_cast<std::size_t>(tensor.shape[0]));
    const int block = tensor::InfoOf(tensor.type).block_elements;
    if (tensor.shape[0] % block != 0)
      return base::DataLossError("tensor '" + tensor.name + "' does not hold whole blocks");
    tensor::DequantizeRow(tensor.type, tensor.bytes.data(), tensor.shape[0], out.data());
    return out;
  }

  kernels::Isa isa_;
  kernels::Team& team_;
};

/// 0 for what Pack is going to refuse.
std::int64_t BytesOf(const model::Linear& linear) {
  const auto bytes = kernels::PackedMatrix::PackedBytes(ViewOf(*linear.weight));
  return bytes.ok() ? *bytes : 0;
}

}  // namespace

StatusOr<std::unique_ptr<PackedModel>> PackedModel::Pack(
    const model::Graph& graph,
    int context_tokens,
    kernels::Isa isa,
    kernels::Team& team,
    const std::function<void(int, int)>& on_packed) {
  const Packer packer(isa, team);
  auto out = std::make_unique<PackedModel>();
  out->vocab_size = graph.vocab_size;
  out->hidden_size = graph.hidden_size;
  out->intermediate_size = graph.intermediate_size;
  HOLMES_ASSIGN_OR_RETURN(out->embedding, packer.Linear(graph.embedding));
  for (const model::Op& op : graph.ops) {
    HOLMES_ASSIGN_OR_RETURN(PackedOp packed,
                            std::visit([&](const auto& o) { return packer.Op(o); }, op));
    if (const auto* attention = std::get_if<PackedAttention>(&packed)) {
      out->query_size = std::max(out->query_size, attention->num_heads * attention->head_dim);
      out->kv_size = std::max(out->kv_size, attention->num_kv_heads * attention->head_dim);
    }
    out->ops.push_back(std::move(packed));
    if (on_packed) on_packed(static_cast<int>(out->ops.size()), static_cast<int>(graph.ops.size()));
  }
  HOLMES_ASSIGN_OR_RETURN(out->output_norm, packer.Norm(graph.output_norm));
  if (!graph.tied_output()) {
    HOLMES_ASSIGN_OR_RETURN(out->output, packer.Linear(graph.output));
  }
  out->rope_layout = graph.rope.layout == model::RopeLayout::kHalf
                         ? kernels::RopeLayout::kHalf
                         : kernels::RopeLayout::kInterleaved;
  out->rope.emplace(graph.rope.inv_freq, context_tokens, graph.rope.factor);
  return out;
}

std::int64_t EstimateWeightBytes(const model::Graph& graph) {
  std::int64_t sum = BytesOf(graph.embedding) + (graph.tied_output() ? 0 : BytesOf(graph.output));
  for (const model::Op& op : graph.ops) {
    if (const auto* a = std::get_if<model::AttentionOp>(&op)) {
      sum += BytesOf(a->query) + BytesOf(a->key) + BytesOf(a->value) + BytesOf(a->output);
    } else {
      const auto& f = std::get<model::GatedFeedForwardOp>(op);
      sum += BytesOf(f.gate) + BytesOf(f.up) + BytesOf(f.down);
    }
  }
  return sum;
}

}  // namespace holmes::exec
