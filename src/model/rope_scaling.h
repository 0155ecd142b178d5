/// Frequencies of the rotary embedding, with the scalings that models store.
#pragma once

#include "model/graph.h"
#include "model/hyperparameters.h"

namespace holmes::model {

/// Supported scalings: none, linear, and by wavelength (config.json: under the name that the
/// description gives; GGUF: a tensor of divisors). Errors: kUnimplemented that names another
/// scaling; kDataLoss for parameters that make no sense.
StatusOr<Rope> BuildRope(const Description& description,
                         const weights::ModelSource& source,
                         const Hyperparameters& hp);

}  // namespace holmes::model
