/// Runs the layers of one step on the compute team. All buffers are taken once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exec/kv_arena.h"
#include "exec/packed_model.h"
#include "kernels/linear/linear.h"
#include "sched/step_plan.h"

namespace holmes::exec {

/// One thread calls Run; the members of the team work inside it.
class CpuStep {
 public:
  /// `arenas[g]` backs KV group g. Everything is borrowed and must outlive the step.
  CpuStep(const PackedModel& model,
          std::span<const std::unique_ptr<KvArena>> arenas,
          kernels::Isa isa,
          kernels::Team& team,
          int max_tokens,
          int max_logit_rows);

  /// Computes the plan's tokens and writes their keys and values.
  /// Returns the logits [n, vocab_size] of the wanted positions: for each row with `sample`, in
  /// order, its last num_draft + 1 tokens.
  std::span<const float> Run(const sched::StepPlan& plan);

  /// What the buffers take. Bytes.
  static std::int64_t EstimateBytes(const model::Graph& graph, int max_tokens, int max_logit_rows);

 private:
  /// A piece of attention work: some tokens of one row for one KV head.
  struct AttentionItem {
    int row = 0;
    int token_in_step = 0;  // where the piece's first token lies in the step's buffers
    int first_position = 0;
    int num_tokens = 0;
  };
  struct TokenPlace {
    int row = 0;
    int position = 0;
  };
  /// What a product reads: floats, or their integers where its format wants those.
  struct Input {
    const float* values = nullptr;
    std::int64_t stride = 0;
    const kernels::QuantizedRows* quantized = nullptr;
    int rows = 0;
  };
  /// With few tokens every member normalizes all of them for itself, which costs less than a
  /// barrier.
  struct MemberBuffers {
    std::vector<float> normalized;  // [kSoloTokens, hidden]
    kernels::QuantizedRows quantized;
  };

  void Prepare(const sched::StepPlan& plan);
  /// What one member of the team does; so do the functions below.
  void RunMember(int member);
  void RunOp(const PackedAttention& op, int member);
  void RunOp(const PackedFeedForward& op, int member);
  /// Rows tokens[i] of `hidden_`, normalized; all of them without `tokens`. Ready for the caller
  /// when it returns.
  Input Normalize(const PackedNorm& norm, std::span<const int> tokens, int rows, int member);
  /// The token's part of `op`: the query heads of one KV head and its key turned, key and value
  /// written.
  void RotateAndStore(const PackedAttention& op, int token, int kv_head);
  void Attend(const PackedAttention& op);
  void AttendItem(const PackedAttention& op, const AttentionItem& item, int kv_head);
  void GateAndUp(const PackedFeedForward& op, const Input& input, int member);
  void Logits(int member);
  static kernels::LinearJob Job(const PackedLinear& linear,
                                const Input& input,
                                std::vector<float>& out,
                                std::int64_t stride,
                                bool accumulate = false);

  const PackedModel& model_;
  std::span<const std::unique_ptr<KvArena>> arenas_;
  kernels::Isa isa_;
  kernels::Team& team_;

  const sched::StepPlan* plan_ = nullptr;
  int num_tokens_ = 0;
  bool single_tokens_ = false;      // no row has more than one token
  std::vector<TokenPlace> places_;  // [num_tokens]
  std::vector<TokenId> ids_;        // [num_tokens]
  std::vector<AttentionItem> attention_items_;
  std::vector<int> logit_tokens_;  // tokens in the step whose logits are wanted

  std::vector<float> hidden_;      // [max_tokens, hidden]
  std::vector<float> normalized_;  // [max_tokens, hidden]
  std::vector<float> query_;       // [max_tokens, query_size]
  std::vector<float> key_;         // [max_tokens, kv_size]
  std::vector<float> value_;       // [max_tokens, kv_size]
  std::vector<float> attended_;    // [max_tokens, query_size]
  std::vector<float> gate_;        // [max_tokens, intermediate]
  std::vector<float> up_;          // [max_tokens, intermediate]
  std::vector<float> logits_;      // [max_logit_rows, vocab]
  kernels::QuantizedRows quantized_normalized_;
  kernels::QuantizedRows quantized_attended_;
  kernels::QuantizedRows quantized_gate_;
  std::vector<MemberBuffers> member_buffers_;
};

}  // namespace holmes::exec
