/// The numbers of a model, read by a description's rules and checked.
#pragma once

#include "base/status.h"
#include "model/description.h"

namespace holmes::model {

struct Hyperparameters {
  int num_layers = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int rotary_dim = 0;  // even, <= head_dim
  int context_tokens = 0;
  int window_tokens = 0;  // 0 = none
  double norm_eps = 0;
  double rope_theta = 0;
};

/// Errors: kDataLoss for a number that is missing, not whole or out of its range; the message has
/// the key and the value.
StatusOr<Hyperparameters> ReadHyperparameters(const Description& description,
                                              const weights::ModelSource& source);

}  // namespace holmes::model
