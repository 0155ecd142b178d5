// Scheduler's planning half: what goes into the next step.
#include <algorithm>
#include <utility>

#include "sched/scheduler.h"

namespace holmes::sched {

Planned Scheduler::Plan() {
  HOLMES_CHECK(!outstanding_, "a plan is outstanding");
  Planned planned;
  ExpireDeadlines(planned.expired);
  StepPlan& plan = planned.plan;
  Budget budget{.tokens = options_.max_tokens_per_step, .rows = options_.max_rows_per_step};
  plan.rows.reserve(running_.size());
  PlanDecodes(plan, budget);
  if (!plan.empty()) budget.tokens = std::min(budget.tokens, options_.max_prefill_tokens_per_step);
  PlanPrefills(plan, budget);
  AdmitWaiting(planned, budget);
  if (plan.empty()) {
    HOLMES_CHECK(groups_.empty(), "there is work, but no step for it");
    return planned;
  }
  plan.step = next_step_++;
  outstanding_ = true;
  return planned;
}

void Scheduler::ExpireDeadlines(std::vector<Expired>& expired) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= clock_.Now()) {
    const RequestId request = deadlines_.begin()->second;
    expired.push_back({request});
    Cancel(request);
  }
}

void Scheduler::PlanDecodes(StepPlan& plan, Budget& budget) {
  // In order of precedence: whoever is preempted for one of them comes later and has no row yet.
  for (auto it = running_.begin(); it != running_.end();) {
    Sequence& sequence = *it->second;
    const OrderKey key = sequence.key;
    const std::uint64_t preemptions = preemptions_;
    if (sequence.num_pending() == 1 && ReserveOrPreempt(sequence, plan)) {
      AddRow(sequence, 1, plan, budget);
    }
    it = preemptions == preemptions_ ? std::next(it) : running_.upper_bound(key);
  }
}

bool Scheduler::ReserveOrPreempt(Sequence& sequence, StepPlan& plan) {
  while (!TryReserve(sequence, sequence.num_tokens(), 0, plan)) {
    if (TakeBlocksFromOthers(sequence)) continue;
    HOLMES_CHECK(running_.begin()->second != &sequence,
                 "a sequence that Add let in does not fit alone");
    Preempt(sequence);
    return false;
  }
  return true;
}

bool Scheduler::TakeBlocksFromOthers(const Sequence& wanting) {
  // Those that do not run yet lose least; then whoever came last. Nobody takes from one that goes
  // first, so the first always gets on.
  if (!waiting_with_blocks_.empty()) {
    DropBlocks(*waiting_with_blocks_.rbegin()->second);
    return true;
  }
  Sequence& last = *running_.rbegin()->second;
  if (!(wanting.key < last.key)) return false;
  Preempt(last);
  return true;
}

bool Scheduler::TryReserve(Sequence& sequence, int up_to_tokens, int spare_blocks, StepPlan& plan) {
  copies_.clear();
  if (!kv_->TryReserve(sequence.id, sequence.computed, up_to_tokens, spare_blocks, copies_)) {
    return false;
  }
  for (const kvcache::Copy& copy : copies_) {
    plan.copies.push_back({.kv_group = copy.group, .from = copy.from, .to = copy.to});
  }
  sequence.holds_blocks = true;
  return true;
}

void Scheduler::PlanPrefills(StepPlan& plan, Budget& budget) {
  for (const auto& [key, sequence] : running_) {
    if (budget.tokens == 0 || budget.rows == 0) return;
    // Its blocks were reserved when it was admitted.
    if (!sequence->in_flight)
      AddRow(*sequence, std::min(sequence->num_pending(), budget.tokens), plan, budget);
  }
}

void Scheduler::AdmitWaiting(Planned& planned, Budget& budget) {
  while (!waiting_.empty() && budget.tokens > 0 && budget.rows > 0 &&
         running_.size() < static_cast<std::size_t>(options_.max_rows_per_step)) {
    Sequence& sequence = *waiting_.begin()->second;
    if (!FindRoom(sequence, planned.plan)) return;  // nobody overtakes it
    LeaveQueues(sequence);
    sequence.state = SequenceState::kRunning;
    running_.emplace(sequence.key, &sequence);
    GroupState& group = *sequence.group;
    if (!std::exchange(group.started, true)) {
      group.cached_prompt_tokens = sequence.computed;
      planned.started.push_back(group.spec.request);
    }
    AddRow(sequence, std::min(sequence.num_pending(), budget.tokens), planned.plan, budget);
  }
}

bool Scheduler::FindRoom(Sequence& sequence, StepPlan& plan) {
  if (sequence.refused_at == releases_) return false;
  if (!sequence.holds_blocks) {
    sequence.computed = kv_->AdoptPrefix(sequence.id, sequence.tokens);
    sequence.holds_blocks = sequence.computed > 0;
  }
  // All of its tokens at once, so that no two half-computed prompts wait for each other's blocks;
  // and a block in reserve for each running sequence, so that nobody has to be preempted for the
  // newcomer at the next block's border.
  const int spare_blocks = static_cast<int>(running_.size());
  while (!TryReserve(sequence, sequence.num_tokens(), spare_blocks, plan)) {
    if (!running_.empty()) {
      if (!waiting_with_blocks_.contains(sequence.key)) DropBlocks(sequence);
      sequence.refused_at = releases_;
      return false;
    }
    // Nothing runs that could end and give blocks back, so they are taken from those that wait
    // behind.
    auto last = waiting_with_blocks_.rbegin();
    if (last != waiting_with_blocks_.rend() && last->second == &sequence) ++last;
    HOLMES_CHECK(last != waiting_with_blocks_.rend(),
                 "a sequence that Add let in does not fit alone");
    DropBlocks(*last->second);
  }
  return true;
}

void Scheduler::AddRow(Sequence& sequence, int num_tokens, StepPlan& plan, Budget& budget) {
  GroupState& group = *sequence.group;
  const int end = sequence.computed + num_tokens;
  PlanRow row{
      .sequence = sequence.id,
      .adapter = group.spec.adapter,
      .input = InputKind::kTokenIds,
      .tokens = {sequence.tokens.begin() + sequence.computed, sequence.tokens.begin() + end},
      .num_tokens = num_tokens,
      .first_position = sequence.computed,
      .num_draft = 0,
      .tables = {},
      .sample = end == sequence.num_tokens(),
      .sample_index = sequence.key.sample_index,
      .sampling = nullptr,
      .history = sequence.tokens,
      .prompt_tokens = group.prompt_tokens};
  const bool below_min = sequence.num_tokens() - group.prompt_tokens < group.spec.min_tokens;
  row.sampling = below_min ? &group.before_min : &group.spec.sampling;
  for (int g = 0; g < kv_->num_groups(); ++g) {
    const int block_tokens = kv_->group(g).block_tokens;
    const auto used = static_cast<std::size_t>((end + block_tokens - 1) / block_tokens);
    const std::span<const BlockId> table = kv_->table(sequence.id, g).first(used);
    row.tables.push_back({.kv_group = g, .blocks = {table.begin(), table.end()}});
  }
  in_flight_.push_back({.sequence = &sequence,
                        .first_position = row.first_position,
                        .num_tokens = num_tokens,
                        .num_draft = row.num_draft,
                        .sample = row.sample});
  sequence.in_flight = true;
  plan.num_tokens += num_tokens;
  plan.rows.push_back(std::move(row));
  budget.tokens -= num_tokens;
  --budget.rows;
}

}  // namespace holmes::sched
