/// One step of the engine as plain data: what the scheduler decides, the back end executes and the
/// scheduler commits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace holmes::sched {

/// How the next token is drawn. Plain data; validated before it gets here.
/// Sampling is keyed by (seed, sample_index, position): the same draw whatever the batch.
struct SamplingParams {
  float temperature = 1.0F;  // 0 = greedy
  float top_p = 1.0F;        // (0, 1]
  int top_k = 0;             // 0 = off
  float min_p = 0.0F;        // [0, 1)
  float presence_penalty = 0.0F;
  float frequency_penalty = 0.0F;
  float repetition_penalty = 1.0F;  // > 0; 1 = off; over prompt and output
  std::uint64_t seed = 0;
  std::vector<std::pair<TokenId, float>> logit_bias;  // ascending ids
  bool logprobs = false;
  int top_logprobs = 0;
};

enum class InputKind : std::uint8_t {
  kTokenIds,    // the ids are in the plan
  kDeviceSlot,  // the last token of this sequence, still on the device from the step before
                // (planning one step ahead)
};

/// Where a row's KV blocks are, for one KV group. table[i] holds positions [i * block_tokens, (i +
/// 1) * block_tokens).
struct BlockTable {
  int kv_group = 0;
  std::vector<BlockId> blocks;
};

/// One sequence's share of a step: tokens at positions [first_position, first_position +
/// num_tokens).
struct PlanRow {
  SequenceId sequence;
  AdapterId adapter{0};
  InputKind input = InputKind::kTokenIds;
  std::vector<TokenId>
      tokens;  // kTokenIds: num_tokens ids (a prefill chunk; the last token and a draft in decode)
  int num_tokens = 0;
  int first_position = 0;
  /// Of the tokens, the last `num_draft` are a draft to be verified.
  int num_draft = 0;
  std::vector<BlockTable> tables;  // one per KV group
  /// Whether the logits after the last token are wanted and a token drawn (false inside a prompt).
  bool sample = false;
  int sample_index = 0;  // which of the request's n samples
  /// Borrowed from the sequence; valid until Commit of this plan.
  const SamplingParams* sampling = nullptr;
  /// All ids of the sequence so far (prompt, then output) and the prompt's length, for penalties.
  /// Borrowed likewise.
  std::span<const TokenId> history;
  int prompt_tokens = 0;
};

/// Copy of a block's bytes before anything else of the step (copy-on-write fork).
struct BlockCopy {
  int kv_group = 0;
  BlockId from;
  BlockId to;
};

struct StepPlan {
  std::uint64_t step = 0;
  std::vector<BlockCopy> copies;
  std::vector<PlanRow> rows;
  int num_tokens = 0;  // over all rows
  bool empty() const { return rows.empty(); }
};

struct TokenLogprob {
  TokenId id = -1;
  float logprob = 0.0F;
};

/// One accepted token with what was asked about it.
struct SampledToken {
  TokenId id = -1;
  float logprob = 0.0F;  // natural log of the probability under the raw (temperature 1, no
                         // penalties) distribution
  std::vector<TokenLogprob> top_logprobs;  // descending
};

/// What a step did for one row, in the plan's order: 0 (inside a prompt) to num_draft + 1 accepted
/// tokens.
struct RowResult {
  SequenceId sequence;
  std::vector<SampledToken> tokens;
  /// Not empty: this row alone failed (NaN logits ...); the sequence ends with this text as its
  /// error.
  std::string error;
};

struct StepResult {
  std::uint64_t step = 0;
  std::vector<RowResult> rows;
};

}  // namespace holmes::sched
