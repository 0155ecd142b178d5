/// What runs a step on a device. Memory is planned and taken once, at creation; Execute allocates
/// nothing on the device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "sched/step_plan.h"

namespace holmes::exec {

/// KV blocks of layers of equal shape and window.
struct KvGroupInfo {
  int num_blocks = 0;
  int block_tokens = 16;
  int num_layers = 0;
  /// Positions that a layer looks back; 0 = all.
  int window_tokens = 0;
  std::size_t block_bytes = 0;  // over the group's layers, keys and values
};

struct BackendInfo {
  std::string device;  // "cpu (amx, 2 threads)"
  int vocab_size = 0;
  int context_tokens = 0;       // longest sequence
  int max_tokens_per_step = 0;  // StepPlan::num_tokens never exceeds it
  int max_rows_per_step = 0;
  std::vector<KvGroupInfo> kv_groups;  // index = group id
};

/// Used by one thread at a time (the executor thread).
class Backend {
 public:
  virtual ~Backend() = default;
  virtual const BackendInfo& info() const = 0;
  /// Runs the plan: block copies first, then all rows, then the sampler for rows with `sample`. One
  /// RowResult per row, in order. Errors are those of the device as a whole (the engine stops); a
  /// row that fails alone says so in RowResult::error. A plan that exceeds info() is a caller bug
  /// (CHECK).
  virtual StatusOr<sched::StepResult> Execute(const sched::StepPlan& plan) = 0;
};

}  // namespace holmes::exec
