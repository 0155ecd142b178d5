#include "exec/cpu_step.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/activation/gated.h"
#include "kernels/norm/rms_norm.h"

namespace holmes::exec {
namespace {

/// Tokens of one attention piece: large enough that keys are read for many queries, small enough to
/// balance.
constexpr int kAttentionPiece = 16;

/// Up to this many tokens are normalized by every member for itself.
constexpr int kSoloTokens = 4;
/// Up to this many tokens the gate and its product are computed panel by panel, without a barrier
/// between; above, products share out better over rows and panels together.
constexpr int kGatedPanelTokens = 64;
constexpr int kPanelRows = kernels::PackedMatrix::kPanelRows;
/// Panels that a member takes at once: whole blocks of QuantizedRows, and what kernels prefer.
constexpr int kPanelUnit = kernels::PackedMatrix::kGroupPanels;

/// Member's share of [0, n) units: [first, second).
std::pair<std::int64_t, std::int64_t> Share(std::int64_t n, int member, int members) {
  return {n * member / members, n * (member + 1) / members};
}

/// Tokens whose elementwise work is taken at once, at most; fewer when there are few, so that every
/// member gets some.
constexpr int kRowsAtOnce = 16;

/// Calls body(i) for the rows of [0, n) that fall to the caller; every row falls to one member.
template <typename Body>
void TakeRows(kernels::Team& team, int n, const Body& body) {
  const int piece = std::clamp(n / (4 * team.size()), 1, kRowsAtOnce);
  for (int first = team.Claim() * piece; first < n; first = team.Claim() * piece) {
    for (int i = first; i < std::min(first + piece, n); ++i) body(i);
  }
}

}  // namespace

CpuStep::CpuStep(const PackedModel& model,
                 std::span<const std::unique_ptr<KvArena>> arenas,
                 kernels::Isa isa,
                 kernels::Team& team,
                 int max_tokens,
                 int max_logit_rows)
    : model_(model),
      arenas_(arenas),
      isa_(isa),
      team_(team),
      quantized_normalized_(max_tokens, model.hidden_size),
      quantized_attended_(max_tokens, model.query_size),
      quantized_gate_(max_tokens, model.intermediate_size) {
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
  for (int i = 0; i < team.size(); ++i) {
    member_buffers_.push_back({std::vector<float>(size(kSoloTokens, model.hidden_size)),
                               kernels::QuantizedRows(kSoloTokens, model.hidden_size)});
  }
}

std::int64_t CpuStep::EstimateBytes(const model::Graph& graph, int max_tokens, int max_logit_rows) {
  std::int64_t query = 0;
  std::int64_t key = 0;
  for (const model::Op& op : graph.ops) {
    const auto* attention = std::get_if<model::AttentionOp>(&op);
    if (attention == nullptr) continue;
    query = std::max<std::int64_t>(query, std::int64_t{attention->num_heads} * attention->head_dim);
    key = std::max<std::int64_t>(key, std::int64_t{attention->num_kv_heads} * attention->head_dim);
  }
  const std::int64_t floats =
      max_tokens * (2LL * graph.hidden_size + 2 * query + 2 * key + 2LL * graph.intermediate_size) +
      static_cast<std::int64_t>(max_logit_rows) * graph.vocab_size;
  return static_cast<std::int64_t>(sizeof(float)) * floats +
         kernels::QuantizedRows::EstimateBytes(max_tokens, graph.hidden_size) +
         kernels::QuantizedRows::EstimateBytes(max_tokens, query) +
         kernels::QuantizedRows::EstimateBytes(max_tokens, graph.intermediate_size);
}

std::span<const float> CpuStep::Run(const sched::StepPlan& plan) {
  Prepare(plan);
  team_.Run([this](int member, int) { RunMember(member); });
  return {logits_.data(), logit_tokens_.size() * static_cast<std::size_t>(model_.vocab_size)};
}

void CpuStep::Prepare(const sched::StepPlan& plan) {
  plan_ = &plan;
  num_tokens_ = 0;
  single_tokens_ = true;
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
    single_tokens_ = single_tokens_ && row.num_tokens == 1;
    if (!row.sample) continue;
    for (int d = row.num_draft; d >= 0; --d) logit_tokens_.push_back(num_tokens_ - 1 - d);
  }
  HOLMES_CHECK(
      static_cast<std::size_t>(num_tokens_) * static_cast<std::size_t>(model_.hidden_size) <=
          hidden_.size(),
      "the plan has more tokens than the buffers");
  HOLMES_CHECK(logit_tokens_.size() * static_cast<std::size_t>(model_.vocab_size) <= logits_.size(),
               "the plan wants more logits than the buffers hold");
}

void CpuStep::RunMember(int member) {
  TakeRows(team_, num_tokens_, [this](int t) {
    model_.embedding.weight.DequantizeRow(ids_[static_cast<std::size_t>(t)],
                                          hidden_.data() + std::int64_t{t} * model_.hidden_size);
  });
  team_.Barrier();
  for (const PackedOp& layer_op : model_.ops) {
    std::visit([&](const auto& op) { RunOp(op, member); }, layer_op);
  }
  Logits(member);
}

CpuStep::Input CpuStep::Normalize(const PackedNorm& norm,
                                  std::span<const int> tokens,
                                  int rows,
                                  int member) {
  const std::int64_t n = model_.hidden_size;
  const bool solo = rows <= kSoloTokens;
  MemberBuffers& own = member_buffers_[static_cast<std::size_t>(member)];
  float* out = solo ? own.normalized.data() : normalized_.data();
  kernels::QuantizedRows& quantized = solo ? own.quantized : quantized_normalized_;
  const auto normalize = [&](int r) {
    const std::int64_t token = tokens.empty() ? r : tokens[static_cast<std::size_t>(r)];
    kernels::RmsNorm(
        hidden_.data() + token * n, n, 1, n, norm.weight.data(), norm.eps, out + r * n, n, isa_);
    quantized.Quantize(out + r * n, n, r, 1, 0, n, isa_);
  };
  if (solo) {
    for (int r = 0; r < rows; ++r) normalize(r);
  } else {
    TakeRows(team_, rows, normalize);
    team_.Barrier();
  }
  return {.values = out, .stride = n, .quantized = &quantized, .rows = rows};
}

kernels::LinearJob CpuStep::Job(const PackedLinear& linear,
                                const Input& input,
                                std::vector<float>& out,
                                std::int64_t stride,
                                bool accumulate) {
  return {.w = &linear.weight,
          .x = input.values,
          .ldx = input.stride,
          .quantized = input.quantized,
          .rows = input.rows,
          .y = out.data(),
          .ldy = stride,
          .options = {.bias = linear.bias_or_null(), .accumulate = accumulate}};
}

void CpuStep::RunOp(const PackedAttention& op, int member) {
  const Input input = Normalize(op.norm, {}, num_tokens_, member);
  const kernels::LinearJob jobs[] = {Job(op.query, input, query_, model_.query_size),
                                     Job(op.key, input, key_, model_.kv_size),
                                     Job(op.value, input, value_, model_.kv_size)};
  kernels::LinearManyInRegion(jobs, team_, member);
  team_.Barrier();
  if (!single_tokens_) {  // otherwise each piece of attention work does its own
    TakeRows(team_, num_tokens_, [&](int t) {
      for (int h = 0; h < op.num_kv_heads; ++h) RotateAndStore(op, t, h);
    });
    team_.Barrier();
  }
  Attend(op);
  team_.Barrier();
  const Input attended{.values = attended_.data(),
                       .stride = model_.query_size,
                       .quantized = &quantized_attended_,
                       .rows = num_tokens_};
  kernels::LinearInRegion(
      Job(op.output, attended, hidden_, model_.hidden_size, true), team_, member);
  team_.Barrier();
}

void CpuStep::RotateAndStore(const PackedAttention& op, int token, int kv_head) {
  const kernels::KvLayerView cache =
      arenas_[static_cast<std::size_t>(op.kv_group)]->Layer(op.layer_in_group);
  const TokenPlace place = places_[static_cast<std::size_t>(token)];
  const std::int64_t dim = op.head_dim;
  const int group = op.num_heads / op.num_kv_heads;
  float* query = query_.data() + std::int64_t{token} * model_.query_size + kv_head * group * dim;
  float* key = key_.data() + std::int64_t{token} * model_.kv_size + kv_head * dim;
  const float* value = value_.data() + std::int64_t{token} * model_.kv_size + kv_head * dim;
  kernels::ApplyRope(query, group, op.head_dim, *model_.rope, place.position, model_.rope_layout);
  kernels::ApplyRope(key, 1, op.head_dim, *model_.rope, place.position, model_.rope_layout);
  const auto& blocks = plan_->rows[static_cast<std::size_t>(place.row)]
                           .tables[static_cast<std::size_t>(op.kv_group)]
                           .blocks;
  constexpr int kBlock = kernels::KvLayerView::kBlockTokens;
  kernels::WriteKvHead(cache,
                       blocks[static_cast<std::size_t>(place.position / kBlock)],
                       place.position % kBlock,
                       kv_head,
                       key,
                       value);
}

void CpuStep::Attend(const PackedAttention& op) {
  const int num_work = static_cast<int>(attention_items_.size()) * op.num_kv_heads;
  // The last pieces of a long prompt cost most: they are taken first.
  for (int work = num_work - 1 - team_.Claim(); work >= 0; work = num_work - 1 - team_.Claim()) {
    AttendItem(op,
               attention_items_[static_cast<std::size_t>(work / op.num_kv_heads)],
               work % op.num_kv_heads);
  }
  const std::int64_t head_inputs = std::int64_t{op.num_heads / op.num_kv_heads} * op.head_dim;
  if (head_inputs % kernels::QuantizedRows::kBlockInputs == 0) return;
  // Heads share blocks of QuantizedRows: all must be there first.
  team_.Barrier();
  TakeRows(team_, num_tokens_, [&](int t) {
    quantized_attended_.Quantize(attended_.data() + std::int64_t{t} * model_.query_size,
                                 model_.query_size,
                                 t,
                                 1,
                                 0,
                                 std::int64_t{op.num_heads} * op.head_dim,
                                 isa_);
  });
}

void CpuStep::AttendItem(const PackedAttention& op, const AttentionItem& item, int kv_head) {
  if (single_tokens_) RotateAndStore(op, item.token_in_step, kv_head);
  const std::int64_t offset = std::int64_t{item.token_in_step} * model_.query_size;
  kernels::PagedAttention(arenas_[static_cast<std::size_t>(op.kv_group)]->Layer(op.layer_in_group),
                          {.q = query_.data() + offset,
                           .out = attended_.data() + offset,
                           .ldq = model_.query_size,
                           .ldo = model_.query_size,
                           .num_tokens = item.num_tokens,
                           .first_position = item.first_position,
                           .blocks = plan_->rows[static_cast<std::size_t>(item.row)]
                                         .tables[static_cast<std::size_t>(op.kv_group)]
                                         .blocks},
                          {.heads = op.num_heads, .scale = op.scale, .window = op.window_tokens},
                          kv_head,
                          isa_);
  const std::int64_t head_inputs = std::int64_t{op.num_heads / op.num_kv_heads} * op.head_dim;
  if (head_inputs % kernels::QuantizedRows::kBlockInputs != 0) return;
  quantized_attended_.Quantize(attended_.data() + offset + kv_head * head_inputs,
                               model_.query_size,
                               item.token_in_step,
                               item.num_tokens,
                               kv_head * head_inputs,
                               head_inputs,
                               isa_);
}

void CpuStep::RunOp(const PackedFeedForward& op, int member) {
  GateAndUp(op, Normalize(op.norm, {}, num_tokens_, member), member);
  team_.Barrier();
  const Input gated{.values = gate_.data(),
                    .stride = model_.intermediate_size,
                    .quantized = &quantized_gate_,
                    .rows = num_tokens_};
  kernels::LinearInRegion(Job(op.down, gated, hidden_, model_.hidden_size, true), team_, member);
  team_.Barrier();
}

void CpuStep::GateAndUp(const PackedFeedForward& op, const Input& input, int member) {
  const std::int64_t wide = model_.intermediate_size;
  const kernels::LinearJob jobs[] = {Job(op.gate, input, gate_, wide),
                                     Job(op.up, input, up_, wide)};
  const auto multiply = [&](int token, std::int64_t first, std::int64_t last) {
    const std::int64_t at = token * wide + first;
    kernels::SiluMul(gate_.data() + at, up_.data() + at, last - first, isa_);
    quantized_gate_.Quantize(gate_.data() + at, wide, token, 1, first, last - first, isa_);
  };
  if (num_tokens_ <= kGatedPanelTokens) {
    const std::int64_t panels = op.gate.weight.num_panels();
    const auto [begin, end] = Share((panels + kPanelUnit - 1) / kPanelUnit, member, team_.size());
    const std::int64_t first = begin * kPanelUnit;
    const std::int64_t last = std::min(end * kPanelUnit, panels);
    for (const kernels::LinearJob& job : jobs) kernels::LinearPanels(job, first, last);
    if (first >= last) return;
    for (int t = 0; t < num_tokens_; ++t)
      multiply(t, first * kPanelRows, std::min(last * kPanelRows, wide));
    return;
  }
  kernels::LinearManyInRegion(jobs, team_, member);
  team_.Barrier();
  TakeRows(team_, num_tokens_, [&](int t) { multiply(t, 0, wide); });
}

void CpuStep::Logits(int member) {
  const Input input =
      Normalize(model_.output_norm, logit_tokens_, static_cast<int>(logit_tokens_.size()), member);
  const PackedLinear& output = model_.output_or_embedding();
  kernels::LinearInRegion(Job(output, input, logits_, model_.vocab_size), team_, member);
}

}  // namespace holmes::exec
