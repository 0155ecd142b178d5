#include "exec/cpu_step.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/activation/gated.h"
#include "kernels/linear/linear.h"
#include "kernels/norm/rms_norm.h"

namespace holmes::exec {
namespace {

/// Tokens of one attention piece: large enough that keys are read for many queries, small enough to
/// balance.
constexpr int kAttentionPiece = 16;

struct Range {
  int begin = 0;
  int end = 0;
};

/// Member's share of [0, n).
Range Share(int n, int member, int members) {
  return {static_cast<int>(static_cast<std::int64_t>(n) * member / members),
          static_cast<int>(static_cast<std::int64_t>(n) * (member + 1) / members)};
}

}  // namespace

CpuStep::CpuStep(const PackedModel& model,
                 std::span<const std::unique_ptr<KvArena>> arenas,
                 kernels::Isa isa,
                 kernels::Team& team,
                 int max_tokens,
                 int max_logit_rows)
    : model_(model), arenas_(arenas), isa_(isa), team_(team), next_item_(model.ops.size()) {
  const auto size = [&](int rows, int columns) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  };
  hidden_.resize(size(max_tokens, model.hidden_size));
  normalized_.resize(hidden_.size());
  query_.resize(size(max_tokens, model.query_size));
  key_.resize(size(max_tokens, model.kv_size));
  value_.resize(key_.size());
  attended_.resize(query_.size());
  gate_.resize(size(max_tokens, model.intermediate_size));
  up_.resize(gate_.size());
  logits_.resize(size(max_logit_rows, model.vocab_size));
}

std::int64_t CpuStep::EstimateBytes(const model::Graph& graph, int max_tokens, int max_logit_rows) {
  std::int64_t attention = 0;
  for (const model::KvGroup& group : graph.kv_groups)
    attention += 4LL * group.num_kv_heads * group.head_dim;
  const std::int64_t per_token =
      4LL * graph.hidden_size + 2LL * graph.intermediate_size + attention;
  return static_cast<std::int64_t>(sizeof(float)) *
         (max_tokens * per_token + static_cast<std::int64_t>(max_logit_rows) * graph.vocab_size);
}

std::span<const float> CpuStep::Run(const sched::StepPlan& plan) {
  Prepare(plan);
  team_.Run([this](int member, int members) { RunMember(member, members); });
  return {logits_.data(), logit_tokens_.size() * static_cast<std::size_t>(model_.vocab_size)};
}

void CpuStep::Prepare(const sched::StepPlan& plan) {
  plan_ = &plan;
  num_tokens_ = 0;
  places_.clear();
  ids_.clear();
  attention_items_.clear();
  logit_tokens_.clear();
  for (std::size_t r = 0; r < plan.rows.size(); ++r) {
    const sched::PlanRow& row = plan.rows[r];
    HOLMES_CHECK(static_cast<int>(row.tokens.size()) == row.num_tokens,
                 "a row's ids and its length differ");
    for (int t = 0; t < row.num_tokens; t += kAttentionPiece) {
      attention_items_.push_back({static_cast<int>(r),
                                  num_tokens_ + t,
                                  row.first_position + t,
                                  std::min(kAttentionPiece, row.num_tokens - t)});
    }
    for (int t = 0; t < row.num_tokens; ++t)
      places_.push_back({static_cast<int>(r), row.first_position + t});
    ids_.insert(ids_.end(), row.tokens.begin(), row.tokens.end());
    num_tokens_ += row.num_tokens;
    if (!row.sample) continue;
    for (int d = row.num_draft; d >= 0; --d) logit_tokens_.push_back(num_tokens_ - 1 - d);
  }
  HOLMES_CHECK(
      static_cast<std::size_t>(num_tokens_) * static_cast<std::size_t>(model_.hidden_size) <=
          hidden_.size(),
      "the plan has more tokens than the buffers");
  HOLMES_CHECK(logit_tokens_.size() * static_cast<std::size_t>(model_.vocab_size) <= logits_.size(),
               "the plan wants more logits than the buffers hold");
  for (std::atomic<int>& next : next_item_) next.store(0, std::memory_order_relaxed);
}

void CpuStep::RunMember(int member, int members) {
  Embed(member, members);
  team_.Barrier();
  for (std::size_t i = 0; i < model_.ops.size(); ++i) {
    std::visit([&](const auto& op) { RunOp(op, i, member, members); }, model_.ops[i]);
  }
  Logits(member, members);
}

void CpuStep::Embed(int member, int members) {
  const Range range = Share(num_tokens_, member, members);
  for (int t = range.begin; t < range.end; ++t) {
    model_.embedding.weight.DequantizeRow(
        ids_[static_cast<std::size_t>(t)],
        hidden_.data() + static_cast<std::int64_t>(t) * model_.hidden_size);
  }
}

void CpuStep::Normalize(const PackedNorm& norm, int member, int members) {
  const std::int64_t n = model_.hidden_size;
  const Range range = Share(num_tokens_, member, members);
  kernels::RmsNorm(hidden_.data() + range.begin * n,
                   n,
                   range.end - range.begin,
                   n,
                   norm.weight.data(),
                   norm.eps,
                   normalized_.data() + range.begin * n,
                   n,
                   isa_);
}

void CpuStep::RunOp(const PackedAttention& op, std::size_t op_idx, int member, int members) {
  Normalize(op.norm, member, members);
  team_.Barrier();
  const std::int64_t hidden = model_.hidden_size;
  const kernels::LinearJob jobs[] = {
      {.w = &op.query.weight,
       .x = normalized_.data(),
       .ldx = hidden,
       .rows = num_tokens_,
       .y = query_.data(),
       .ldy = model_.query_size,
       .options = {.bias = op.query.bias_or_null()}},
      {.w = &op.key.weight,
       .x = normalized_.data(),
       .ldx = hidden,
       .rows = num_tokens_,
       .y = key_.data(),
       .ldy = model_.kv_size,
       .options = {.bias = op.key.bias_or_null()}},
      {.w = &op.value.weight,
       .x = normalized_.data(),
       .ldx = hidden,
       .rows = num_tokens_,
       .y = value_.data(),
       .ldy = model_.kv_size,
       .options = {.bias = op.value.bias_or_null()}},
  };
  kernels::LinearManyInRegion(jobs, member, members);
  team_.Barrier();
  RotateAndStore(op, member, members);
  team_.Barrier();
  Attend(op, op_idx);
  team_.Barrier();
  kernels::LinearInRegion({.w = &op.output.weight,
                           .x = attended_.data(),
                           .ldx = model_.query_size,
                           .rows = num_tokens_,
                           .y = hidden_.data(),
                           .ldy = hidden,
                           .options = {.bias = op.output.bias_or_null(), .accumulate = true}},
                          member,
                          members);
  team_.Barrier();
}

void CpuStep::RotateAndStore(const PackedAttention& op, int member, int members) {
  const kernels::KvLayerView cache =
      arenas_[static_cast<std::size_t>(op.kv_group)]->Layer(op.layer_in_group);
  const Range range = Share(num_tokens_, member, members);
  for (int t = range.begin; t < range.end; ++t) {
    const TokenPlace place = places_[static_cast<std::size_t>(t)];
    float* query = query_.data() + static_cast<std::int64_t>(t) * model_.query_size;
    float* key = key_.data() + static_cast<std::int64_t>(t) * model_.kv_size;
    kernels::ApplyRope(
        query, op.num_heads, op.head_dim, *model_.rope, place.position, model_.rope_layout);
    kernels::ApplyRope(
        key, op.num_kv_heads, op.head_dim, *model_.rope, place.position, model_.rope_layout);
    const auto& blocks = plan_->rows[static_cast<std::size_t>(place.row)]
                             .tables[static_cast<std::size_t>(op.kv_group)]
                             .blocks;
    constexpr int kBlock = kernels::KvLayerView::kBlockTokens;
    kernels::WriteKv(cache,
                     blocks[static_cast<std::size_t>(place.position / kBlock)],
                     place.position % kBlock,
                     key,
                     value_.data() + static_cast<std::int64_t>(t) * model_.kv_size);
  }
}

void CpuStep::Attend(const PackedAttention& op, std::size_t op_idx) {
  const kernels::KvLayerView cache =
      arenas_[static_cast<std::size_t>(op.kv_group)]->Layer(op.layer_in_group);
  const kernels::AttentionShape shape{
      .heads = op.num_heads, .scale = op.scale, .window = op.window_tokens};
  const int num_work = static_cast<int>(attention_items_.size()) * op.num_kv_heads;
  // Taken one by one, since later pieces of a long prompt cost more. Which thread takes one changes
  // nothing in its result.
  for (int work = next_item_[op_idx].fetch_add(1); work < num_work;
       work = next_item_[op_idx].fetch_add(1)) {
    const AttentionItem& item = attention_items_[static_cast<std::size_t>(work / op.num_kv_heads)];
    const std::int64_t offset = static_cast<std::int64_t>(item.token_in_step) * model_.query_size;
    kernels::PagedAttention(cache,
                            {.q = query_.data() + offset,
                             .out = attended_.data() + offset,
                             .ldq = model_.query_size,
                             .ldo = model_.query_size,
                             .num_tokens = item.num_tokens,
                             .first_position = item.first_position,
                             .blocks = plan_->rows[static_cast<std::size_t>(item.row)]
                                           .tables[static_cast<std::size_t>(op.kv_group)]
                                           .blocks},
                            shape,
                            work % op.num_kv_heads,
                            isa_);
  }
}

void CpuStep::RunOp(const PackedFeedForward& op, std::size_t, int member, int members) {
  Normalize(op.norm, member, members);
  team_.Barrier();
  const std::int64_t hidden = model_.hidden_size;
  const std::int64_t wide = model_.intermediate_size;
  const kernels::LinearJob jobs[] = {
      {.w = &op.gate.weight,
       .x = normalized_.data(),
       .ldx = hidden,
       .rows = num_tokens_,
       .y = gate_.data(),
       .ldy = wide,
       .options = {.bias = op.gate.bias_or_null()}},
      {.w = &op.up.weight,
       .x = normalized_.data(),
       .ldx = hidden,
       .rows = num_tokens_,
       .y = up_.data(),
       .ldy = wide,
       .options = {.bias = op.up.bias_or_null()}},
  };
  kernels::LinearManyInRegion(jobs, member, members);
  team_.Barrier();
  const Range range = Share(static_cast<int>(num_tokens_ * wide / 16), member, members);
  const std::int64_t begin = static_cast<std::int64_t>(range.begin) * 16;
  const std::int64_t end =
      member + 1 == members ? num_tokens_ * wide : static_cast<std::int64_t>(range.end) * 16;
  kernels::SiluMul(gate_.data() + begin, up_.data() + begin, end - begin, isa_);
  team_.Barrier();
  kernels::LinearInRegion({.w = &op.down.weight,
                           .x = gate_.data(),
                           .ldx = wide,
                           .rows = num_tokens_,
                           .y = hidden_.data(),
                           .ldy = hidden,
                           .options = {.bias = op.down.bias_or_null(), .accumulate = true}},
                          member,
                          members);
  team_.Barrier();
}

void CpuStep::Logits(int member, int members) {
  const std::int64_t n = model_.hidden_size;
  const int rows = static_cast<int>(logit_tokens_.size());
  const Range range = Share(rows, member, members);
  for (int r = range.begin; r < range.end; ++r) {
    kernels::RmsNorm(hidden_.data() + logit_tokens_[static_cast<std::size_t>(r)] * n,
                     n,
                     1,
                     n,
                     model_.output_norm.weight.data(),
                     model_.output_norm.eps,
                     normalized_.data() + r * n,
                     n,
                     isa_);
  }
  team_.Barrier();
  const PackedLinear& output = model_.output_or_embedding();
  kernels::LinearInRegion({.w = &output.weight,
                           .x = normalized_.data(),
                           .ldx = n,
                           .rows = rows,
                           .y = logits_.data(),
                           .ldy = model_.vocab_size,
                           .options = {.bias = output.bias_or_null()}},
                          member,
                          members);
}

}  // namespace holmes::exec
