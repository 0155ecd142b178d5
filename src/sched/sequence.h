/// What the scheduler keeps of a request and of its samples.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "sched/step_plan.h"

namespace holmes::sched {

/// One request: n samples of one prompt. Plain data, validated before.
struct SequenceGroup {
  RequestId request;
  std::vector<TokenId> prompt;  // not empty
  SamplingParams sampling;      // with the seed to use
  int n = 1;
  int max_tokens = 0;            // new tokens per sample; 0 = as many as fit
  int min_tokens = 0;            // end_ids are not drawn before
  std::vector<TokenId> end_ids;  // each ends a sample; any order
  AdapterId adapter{0};
  /// Sequences share KV only inside one namespace (model, adapter, tenant's salt).
  std::string name_space;
  int priority = 0;  // smaller goes first
  std::optional<base::Clock::TimePoint> deadline;
};

enum class EndReason : std::uint8_t {
  kEndToken,   // an id of end_ids; it is the last of the accepted tokens
  kMaxTokens,  // max_tokens reached, or nothing more fits (context, KV)
  kError,      // the row failed alone
};

/// Who goes first: priority, then arrival, then sample.
struct OrderKey {
  int priority = 0;
  std::uint64_t arrival = 0;
  int sample_index = 0;
  friend auto operator<=>(const OrderKey&, const OrderKey&) = default;
};

enum class SequenceState : std::uint8_t {
  kWaiting,      // in the queue: new, preempted, or forked and without a place yet
  kRunning,      // takes part in steps
  kWantsPrompt,  // a further sample, until the first one has computed the prompt
  kEnded,        // over; kept only until the step that it takes part in is committed
};

struct GroupState;

/// One sample. Invariants: the KV of tokens[0, computed) is in its blocks; computed < tokens.size()
/// until it ends; running and decoding means computed == tokens.size() - 1.
struct Sequence {
  SequenceId id;
  GroupState* group = nullptr;
  OrderKey key;
  SequenceState state = SequenceState::kWaiting;
  std::vector<TokenId> tokens;  // prompt, then output
  int computed = 0;
  bool in_flight = false;  // has a row in the step that is being executed
  bool holds_blocks = false;
  std::uint64_t refused_at =
      0;  // the scheduler's release count when it last found no room for this sequence

  int num_tokens() const { return static_cast<int>(tokens.size()); }
  int num_pending() const { return num_tokens() - computed; }
};

struct GroupState {
  SequenceGroup spec;
  SamplingParams before_min;  // spec.sampling with end_ids out of reach, while a sample is shorter
                              // than min_tokens
  int prompt_tokens = 0;
  int max_total_tokens = 0;  // of one sample, prompt included
  int cached_prompt_tokens = 0;
  bool started = false;                            // a first row was planned
  bool prompt_computed = false;                    // and the further samples forked
  std::vector<std::unique_ptr<Sequence>> samples;  // index = sample_index; null when gone
  int num_left = 0;
};

}  // namespace holmes::sched
