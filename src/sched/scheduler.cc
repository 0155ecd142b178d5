#include "sched/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace holmes::sched {

StatusOr<std::unique_ptr<Scheduler>> Scheduler::Create(SchedulerOptions options,
                                                       const base::Clock& clock) {
  const auto positive = [](int value, const char* name) {
    return value > 0 ? OkStatus()
                     : base::InvalidArgumentError(
                           fmt::format("{} is {}; it must be at least 1", name, value));
  };
  HOLMES_RETURN_IF_ERROR(positive(options.context_tokens, "context_tokens"));
  HOLMES_RETURN_IF_ERROR(positive(options.max_tokens_per_step, "max_tokens_per_step"));
  HOLMES_RETURN_IF_ERROR(positive(options.max_rows_per_step, "max_rows_per_step"));
  HOLMES_RETURN_IF_ERROR(positive(options.max_waiting_sequences, "max_waiting_sequences"));
  if (options.max_prefill_tokens_per_step < 0) {
    return base::InvalidArgumentError(
        fmt::format("max_prefill_tokens_per_step is {}; it must not be negative",
                    options.max_prefill_tokens_per_step));
  }
  // Every running sequence has a token in every step, so that none waits for another's end.
  options.max_rows_per_step = std::min(options.max_rows_per_step, options.max_tokens_per_step);
  if (options.max_prefill_tokens_per_step == 0)
    options.max_prefill_tokens_per_step = options.max_tokens_per_step;
  HOLMES_ASSIGN_OR_RETURN(std::unique_ptr<kvcache::KvManager> kv,
                          kvcache::KvManager::Create(
                              {.groups = options.kv_groups, .prefix_reuse = options.prefix_reuse}));
  return std::unique_ptr<Scheduler>(new Scheduler(std::move(options), std::move(kv), clock));
}

Scheduler::Scheduler(SchedulerOptions options,
                     std::unique_ptr<kvcache::KvManager> kv,
                     const base::Clock& clock)
    : options_(std::move(options)), clock_(clock), kv_(std::move(kv)) {
  max_sequence_tokens_ = std::min(options_.context_tokens, kv_->capacity_tokens());
}

Scheduler::~Scheduler() {
  if (outstanding_) Abandon();
  while (!groups_.empty()) Cancel(groups_.begin()->first);
}

StatusOr<std::vector<SequenceId>> Scheduler::Add(SequenceGroup spec) {
  if (spec.prompt.empty())
    return base::InvalidArgumentError("the prompt has no tokens").WithParam("prompt");
  if (spec.n < 1)
    return base::InvalidArgumentError(fmt::format("n is {}; it must be at least 1", spec.n))
        .WithParam("n");
  if (static_cast<std::int64_t>(spec.prompt.size()) >= max_sequence_tokens_) {
    return base::InvalidArgumentError(
               fmt::format("the prompt has {} tokens, but prompt and answer together may have {} "
                           "here (context {}, KV cache {})",
                           spec.prompt.size(),
                           max_sequence_tokens_,
                           options_.context_tokens,
                           kv_->capacity_tokens()))
        .WithParam("prompt");
  }
  if (groups_.contains(spec.request))
    return base::AlreadyExistsError(fmt::format("request {} is known", spec.request.value));
  const std::size_t waiting = waiting_.size() + static_cast<std::size_t>(num_wanting_prompt_);
  if (waiting + static_cast<std::size_t>(spec.n) >
      static_cast<std::size_t>(options_.max_waiting_sequences)) {
    return base::ResourceExhaustedError(fmt::format(
        "{} sequences wait already, of at most {}", waiting, options_.max_waiting_sequences));
  }

  auto group = std::make_unique<GroupState>();
  group->prompt_tokens = static_cast<int>(spec.prompt.size());
  const int room = max_sequence_tokens_ - group->prompt_tokens;
  group->max_total_tokens =
      group->prompt_tokens + (spec.max_tokens > 0 ? std::min(spec.max_tokens, room) : room);
  std::ranges::sort(spec.end_ids);
  group->before_min = spec.sampling;
  if (spec.min_tokens > 0) {
    for (const TokenId id : spec.end_ids)
      group->before_min.logit_bias.emplace_back(id, -std::numeric_limits<float>::infinity());
    std::ranges::stable_sort(group->before_min.logit_bias, {}, &std::pair<TokenId, float>::first);
  }
  group->spec = std::move(spec);
  group->num_left = group->spec.n;
  const std::uint64_t arrival = next_arrival_++;
  std::vector<SequenceId> ids;
  for (int i = 0; i < group->spec.n; ++i) {
    auto sequence = std::make_unique<Sequence>();
    sequence->id = SequenceId{next_sequence_++};
    sequence->group = group.get();
    sequence->key = {.priority = group->spec.priority, .arrival = arrival, .sample_index = i};
    sequence->tokens = group->spec.prompt;
    kv_->Add(sequence->id, group->spec.name_space);
    sequences_.emplace(sequence->id, sequence.get());
    ids.push_back(sequence->id);
    if (i == 0) {
      Enqueue(*sequence);
    } else {
      sequence->state = SequenceState::kWantsPrompt;
      ++num_wanting_prompt_;
    }
    group->samples.push_back(std::move(sequence));
  }
  if (group->spec.deadline) deadlines_.emplace(*group->spec.deadline, group->spec.request);
  groups_.emplace(group->spec.request, std::move(group));
  return ids;
}

void Scheduler::Cancel(RequestId request) {
  const auto it = groups_.find(request);
  if (it == groups_.end()) return;
  std::vector<Sequence*> samples;
  for (const auto& sample : it->second->samples) {
    if (sample && sample->state != SequenceState::kEnded) samples.push_back(sample.get());
  }
  // Last first, so that the prompt is not passed on to a sample that goes too. The group goes with
  // its last sample.
  for (auto sample = samples.rbegin(); sample != samples.rend(); ++sample) EndSequence(**sample);
}

void Scheduler::End(SequenceId id) {
  Sequence* sequence = Find(id);
  if (sequence != nullptr && sequence->state != SequenceState::kEnded) EndSequence(*sequence);
}

Sequence* Scheduler::Find(SequenceId id) const {
  const auto it = sequences_.find(id);
  return it == sequences_.end() ? nullptr : it->second;
}

// ---- State changes of one sequence ----

void Scheduler::Enqueue(Sequence& sequence) {
  sequence.state = SequenceState::kWaiting;
  waiting_.emplace(sequence.key, &sequence);
  if (sequence.holds_blocks) waiting_with_blocks_.emplace(sequence.key, &sequence);
}

void Scheduler::LeaveQueues(Sequence& sequence) {
  if (sequence.state == SequenceState::kWantsPrompt) --num_wanting_prompt_;
  waiting_.erase(sequence.key);
  waiting_with_blocks_.erase(sequence.key);
  running_.erase(sequence.key);
}

void Scheduler::DropBlocks(Sequence& sequence) {
  kv_->Drop(sequence.id);
  sequence.computed = 0;
  sequence.holds_blocks = false;
  waiting_with_blocks_.erase(sequence.key);
  ++releases_;
}

void Scheduler::Preempt(Sequence& sequence) {
  LeaveQueues(sequence);
  DropBlocks(sequence);
  Enqueue(sequence);
  ++preemptions_;
}

void Scheduler::EndSequence(Sequence& sequence) {
  GroupState& group = *sequence.group;
  const bool computes_prompt =
      !group.prompt_computed && sequence.state != SequenceState::kWantsPrompt;
  LeaveQueues(sequence);
  sequence.state = SequenceState::kEnded;
  if (computes_prompt) PassPromptOn(group);
  if (!sequence.in_flight) Erase(sequence);
}

void Scheduler::PassPromptOn(GroupState& group) {
  for (const auto& sample : group.samples) {
    if (!sample || sample->state != SequenceState::kWantsPrompt) continue;
    --num_wanting_prompt_;
    Enqueue(*sample);
    return;
  }
}

void Scheduler::Erase(Sequence& sequence) {
  GroupState& group = *sequence.group;
  kv_->Free(sequence.id);
  ++releases_;
  sequences_.erase(sequence.id);
  group.samples[static_cast<std::size_t>(sequence.key.sample_index)].reset();
  if (--group.num_left > 0) return;
  if (group.spec.deadline) deadlines_.erase({*group.spec.deadline, group.spec.request});
  groups_.erase(RequestId(group.spec.request));
}

void Scheduler::ForkSamples(Sequence& first) {
  GroupState& group = *first.group;
  group.prompt_computed = true;
  // All but the last prompt token is shared; each sample computes that one itself to get the logits
  // that its first token is drawn from.
  const int shared = group.prompt_tokens - 1;
  for (const auto& sample : group.samples) {
    if (!sample || sample->state != SequenceState::kWantsPrompt) continue;
    --num_wanting_prompt_;
    kv_->Fork(first.id, sample->id, shared);
    sample->computed = shared;
    sample->holds_blocks = shared > 0;
    Enqueue(*sample);
  }
}

SchedulerStats Scheduler::Stats() const {
  SchedulerStats stats{.waiting = static_cast<int>(waiting_.size()) + num_wanting_prompt_,
                       .running = static_cast<int>(running_.size()),
                       .preemptions = preemptions_};
  for (int g = 0; g < kv_->num_groups(); ++g) {
    const kvcache::GroupStats group = kv_->stats(g);
    stats.kv_total += group.total;
    stats.kv_held += group.held;
    stats.kv_cached += group.cached;
  }
  return stats;
}

Status Scheduler::CheckIntegrity() const {
  HOLMES_RETURN_IF_ERROR(kv_->CheckIntegrity());
  for (const auto& [id, sequence] : sequences_) {
    for (int g = 0; g < kv_->num_groups(); ++g) {
      const auto covered =
          static_cast<std::int64_t>(kv_->table(id, g).size()) * kv_->group(g).block_tokens;
      if (covered < sequence->computed) {
        return base::InternalError(
            fmt::format("sequence {} has computed {} tokens and blocks for {}",
                        id.value,
                        sequence->computed,
                        covered));
      }
      if ((covered > 0) && !sequence->holds_blocks)
        return base::InternalError(fmt::format("sequence {} hides its blocks", id.value));
    }
    if (sequence->state != SequenceState::kEnded && sequence->num_pending() < 1) {
      return base::InternalError(fmt::format("sequence {} has nothing left to compute", id.value));
    }
  }
  return CheckQueues();
}

Status Scheduler::CheckQueues() const {
  int wanting_prompt = 0;
  for (const auto& [id, sequence] : sequences_) {
    const bool waits = waiting_.contains(sequence->key);
    const bool runs = running_.contains(sequence->key);
    const bool listed = waiting_with_blocks_.contains(sequence->key);
    wanting_prompt += sequence->state == SequenceState::kWantsPrompt ? 1 : 0;
    if (waits != (sequence->state == SequenceState::kWaiting) ||
        runs != (sequence->state == SequenceState::kRunning) ||
        listed != (waits && sequence->holds_blocks)) {
      return base::InternalError(fmt::format("sequence {} is in the wrong queue", id.value));
    }
  }
  if (waiting_.size() + running_.size() + static_cast<std::size_t>(wanting_prompt) >
          sequences_.size() ||
      wanting_prompt != num_wanting_prompt_ ||
      running_.size() > static_cast<std::size_t>(options_.max_rows_per_step)) {
    return base::InternalError("the queues hold sequences that are gone, or too many");
  }
  return OkStatus();
}

}  // namespace holmes::sched
