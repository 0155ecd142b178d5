/// Decides what each step computes.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "kvcache/kv_manager.h"
#include "sched/sequence.h"
#include "sched/step_plan.h"

namespace holmes::sched {

struct SchedulerOptions {
  std::vector<kvcache::GroupOptions> kv_groups;
  int context_tokens = 0;       // longest sequence, prompt and output
  int max_tokens_per_step = 0;  // all rows together
  int max_rows_per_step = 0;    // also the number of sequences that run at a time
  /// Prompt tokens per step while other sequences decode: small keeps running streams smooth, large
  /// lets waiting requests in sooner. A step without decodes uses the whole budget. 0 =
  /// max_tokens_per_step.
  int max_prefill_tokens_per_step = 0;
  int max_waiting_sequences = 1 << 20;
  bool prefix_reuse = false;
};

/// A request that ended without a step: its deadline passed.
struct Expired {
  RequestId request;
};

/// What Plan decided.
struct Planned {
  StepPlan plan;
  std::vector<Expired> expired;
  /// Requests whose first row is in this plan.
  std::vector<RequestId> started;
};

/// What a committed step means for one row.
struct Accepted {
  RequestId request;
  SequenceId sequence;
  int sample_index = 0;
  std::vector<SampledToken>
      tokens;  // to keep, in order; fewer than the result had when the sequence ended among them
  std::optional<EndReason> ended;
  std::string error;  // EndReason::kError only: the whole request has ended
  int cached_prompt_tokens = 0;
};

struct SchedulerStats {
  int waiting = 0;  // not running, for whatever reason
  int running = 0;
  std::uint64_t preemptions = 0;
  int kv_total = 0, kv_held = 0, kv_cached = 0;  // blocks, over all groups
};

/// Owns all sequences and their blocks. One thread (the engine thread) uses it. Deterministic: same
/// calls, same plans. Invariants:
///  1. At most one plan is outstanding: Plan, then Commit or Abandon. What a plan borrows lives
///  until then, also when its sequence is cancelled.
///  2. A plan never exceeds max_tokens_per_step or max_rows_per_step; every row's blocks are
///  reserved.
///  3. With work left, Plan is never empty: the first running sequence (OrderKey) can take every
///  other's blocks, and Add refuses what fits alone never.
///  4. Nobody overtakes in the waiting queue, so what waits is admitted after finitely many steps.
class Scheduler {
 public:
  /// Errors: kInvalidArgument names the option.
  static StatusOr<std::unique_ptr<Scheduler>> Create(SchedulerOptions options,
                                                     const base::Clock& clock);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Queues a request; returns its samples' ids. Errors: kInvalidArgument (empty prompt, n < 1, a
  /// prompt that leaves no room for a token: both numbers in the message), kAlreadyExists,
  /// kResourceExhausted (queue full).
  StatusOr<std::vector<SequenceId>> Add(SequenceGroup spec);
  /// Ends all samples of a request, in any state; unknown ids are ignored.
  void Cancel(RequestId request);
  /// Ends one sample, in any state; unknown ids are ignored.
  void End(SequenceId sequence);

  /// The next step; empty when there is nothing to do. Requests past their deadline end first.
  Planned Plan();
  /// Precondition: `result` has one row per row of the outstanding plan, in its order. Rows of
  /// sequences that were ended meanwhile are left out.
  std::vector<Accepted> Commit(StepResult result);
  /// The outstanding plan was not executed: its sequences keep their tokens and are computed anew.
  void Abandon();

  bool has_work() const { return !groups_.empty(); }
  /// Whether anything of the request is left: also a cancelled one whose step is being executed.
  bool Contains(RequestId request) const { return groups_.contains(request); }
  /// The longest prompt plus output that one sample can have.
  int max_sequence_tokens() const { return max_sequence_tokens_; }
  const SchedulerOptions& options() const { return options_; }
  SchedulerStats Stats() const;
  const kvcache::KvManager& kv() const { return *kv_; }
  /// kInternal names the first broken invariant. Cost: all sequences and blocks.
  Status CheckIntegrity() const;

 private:
  /// Tokens and rows that a plan may still take.
  struct Budget {
    int tokens = 0;
    int rows = 0;
  };

  Scheduler(SchedulerOptions options,
            std::unique_ptr<kvcache::KvManager> kv,
            const base::Clock& clock);

  // Planning.
  void ExpireDeadlines(std::vector<Expired>& expired);
  void PlanDecodes(StepPlan& plan, Budget& budget);
  void PlanPrefills(StepPlan& plan, Budget& budget);
  void AdmitWaiting(Planned& planned, Budget& budget);
  bool FindRoom(Sequence& sequence, StepPlan& plan);
  bool ReserveOrPreempt(Sequence& sequence, StepPlan& plan);
  bool TakeBlocksFromOthers(const Sequence& wanting);
  void AddRow(Sequence& sequence, int num_tokens, StepPlan& plan, Budget& budget);
  bool TryReserve(Sequence& sequence, int up_to_tokens, int spare_blocks, StepPlan& plan);

  // State changes of one sequence.
  void Enqueue(Sequence& sequence);
  void Preempt(Sequence& sequence);
  void DropBlocks(Sequence& sequence);
  void LeaveQueues(Sequence& sequence);
  void EndSequence(Sequence& sequence);
  void PassPromptOn(GroupState& group);
  void Erase(Sequence& sequence);
  void ForkSamples(Sequence& first);

  // Commit.
  struct InFlight;
  void CommitRow(const InFlight& planned, RowResult& row, std::vector<Accepted>& accepted);
  void Append(Sequence& sequence, RowResult& row, Accepted& accepted);
  Sequence* Find(SequenceId id) const;
  Status CheckQueues() const;

  const SchedulerOptions options_;
  const base::Clock& clock_;
  std::unique_ptr<kvcache::KvManager> kv_;
  int max_sequence_tokens_ = 0;

  std::unordered_map<RequestId, std::unique_ptr<GroupState>> groups_;
  std::unordered_map<SequenceId, Sequence*> sequences_;
  std::map<OrderKey, Sequence*> waiting_;
  std::map<OrderKey, Sequence*> running_;
  std::map<OrderKey, Sequence*> waiting_with_blocks_;  // forked samples without a place
  std::set<std::pair<base::Clock::TimePoint, RequestId>> deadlines_;
  /// The outstanding plan's rows, without their tables.
  struct InFlight {
    Sequence* sequence = nullptr;  // stays until the step is committed
    int first_position = 0;
    int num_tokens = 0;
    int num_draft = 0;
    bool sample = false;
  };
  std::vector<InFlight> in_flight_;
  std::vector<kvcache::Copy> copies_;  // scratch of TryReserve
  bool outstanding_ = false;
  std::uint64_t next_step_ = 1;
  std::uint64_t next_arrival_ = 1;
  std::uint64_t next_sequence_ = 1;
  std::uint64_t preemptions_ = 0;
  std::uint64_t releases_ = 1;  // how often blocks were given back; a sequence that found no room
                                // looks again only after that
  int num_wanting_prompt_ = 0;
};

}  // namespace holmes::sched
