/// Runs the layers of one step on the compute team. All buffers are taken once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exec/kv_arena.h"
#include "exec/packed_model.h"
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

  void Prepare(const sched::StepPlan& plan);
  void RunMember(int member, int members);
  void Embed(int member, int members);
  void RunOp(const PackedAttention& op, std::size_t op_idx, int member, int members);
  void RunOp(const PackedFeedForward& op, std::size_t op_idx, int member, int members);
  void Normalize(const PackedNorm& norm, int member, int members);
  void RotateAndStore(const PackedAttention& op, int member, int members);
  void Attend(const PackedAttention& op, std::size_t op_idx);
  void Logits(int member, int members);

  const PackedModel& model_;
  std::span<const std::unique_ptr<KvArena>> arenas_;
  kernels::Isa isa_;
  kernels::Team& team_;

  const sched::StepPlan* plan_ = nullptr;
  int num_tokens_ = 0;
  std::vector<TokenPlace> places_;  // [num_tokens]
  std::vector<TokenId> ids_;        // [num_tokens]
  std::vector<AttentionItem> attention_items_;
  std::vector<int> logit_tokens_;            // tokens in the step whose logits are wanted
  std::vector<std::atomic<int>> next_item_;  // per op: work not yet taken

  std::vector<float> hidden_;      // [max_tokens, hidden]
  std::vector<float> normalized_;  // [max_tokens, hidden]
  std::vector<float> query_;       // [max_tokens, query_size]; attention writes over `attended_`
  std::vector<float> key_;         // [max_tokens, kv_size]
  std::vector<float> value_;       // [max_tokens, kv_size]
  std::vector<float> attended_;    // [max_tokens, query_size]
  std::vector<float> gate_;        // [max_tokens, intermediate]
  std::vector<float> up_;          // [max_tokens, intermediate]
  std::vector<float> logits_;      // [max_logit_rows, vocab]
};

}  // namespace holmes::exec
