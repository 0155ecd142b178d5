// Scheduler's committing half: what a step's result means for its sequences.
#include <algorithm>
#include <utility>

#include "sched/scheduler.h"

namespace holmes::sched {

std::vector<Accepted> Scheduler::Commit(StepResult result) {
  HOLMES_CHECK(outstanding_ && result.step + 1 == next_step_,
               "the result is not that of the outstanding plan");
  HOLMES_CHECK(result.rows.size() == in_flight_.size(),
               "a step's result has one row per planned row");
  outstanding_ = false;
  const std::vector<InFlight> rows = std::exchange(in_flight_, {});
  std::vector<Accepted> accepted;
  accepted.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) CommitRow(rows[i], result.rows[i], accepted);
  return accepted;
}

void Scheduler::CommitRow(const InFlight& planned,
                          RowResult& row,
                          std::vector<Accepted>& accepted) {
  Sequence* sequence = planned.sequence;
  HOLMES_CHECK(row.sequence == sequence->id, "a step's result keeps the plan's order");
  sequence->in_flight = false;
  if (sequence->state == SequenceState::kEnded) return Erase(*sequence);

  GroupState& group = *sequence->group;
  Accepted& out =
      accepted.emplace_back(Accepted{.request = group.spec.request,
                                     .sequence = sequence->id,
                                     .sample_index = sequence->key.sample_index,
                                     .cached_prompt_tokens = group.cached_prompt_tokens});
  if (!row.error.empty()) {
    out.ended = EndReason::kError;
    out.error = std::move(row.error);
    return Cancel(group.spec.request);
  }
  const int num_sampled = static_cast<int>(row.tokens.size());
  HOLMES_CHECK(
      planned.sample ? num_sampled >= 1 && num_sampled <= planned.num_draft + 1 : num_sampled == 0,
      "a row samples 1 to num_draft + 1 tokens where the plan wants a sample, none elsewhere");
  // Of a draft, the accepted tokens' KV stays; what was rejected is written over.
  sequence->computed = planned.first_position + planned.num_tokens - planned.num_draft +
                       std::max(0, num_sampled - 1);
  Append(*sequence, row, out);
  const auto computed =
      std::min(sequence->tokens.size(), static_cast<std::size_t>(sequence->computed));
  kv_->Seal(sequence->id, std::span<const TokenId>(sequence->tokens).first(computed));
  if (planned.sample && !group.prompt_computed) ForkSamples(*sequence);
  if (out.ended) EndSequence(*sequence);
}

void Scheduler::Append(Sequence& sequence, RowResult& row, Accepted& accepted) {
  const GroupState& group = *sequence.group;
  for (SampledToken& token : row.tokens) {
    const int num_before = sequence.num_tokens() - group.prompt_tokens;
    sequence.tokens.push_back(token.id);
    const bool ends = num_before >= group.spec.min_tokens &&
                      std::ranges::binary_search(group.spec.end_ids, token.id);
    accepted.tokens.push_back(std::move(token));
    if (ends) accepted.ended = EndReason::kEndToken;
    if (!ends && sequence.num_tokens() >= group.max_total_tokens)
      accepted.ended = EndReason::kMaxTokens;
    if (accepted.ended) return;
  }
}

void Scheduler::Abandon() {
  HOLMES_CHECK(outstanding_, "no plan is outstanding");
  outstanding_ = false;
  for (const InFlight& row : std::exchange(in_flight_, {})) {
    Sequence* sequence = row.sequence;
    sequence->in_flight = false;
    if (sequence->state == SequenceState::kEnded) {
      Erase(*sequence);
    } else {
      Preempt(*sequence);  // its block copies may not have been made
    }
  }
}

}  // namespace holmes::sched
