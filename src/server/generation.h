/// A request of the API as requests of the engine.
#pragma once

#include <optional>

#include "api/requests.h"
#include "engine/request.h"

namespace holmes::server {

/// What a model's generation_config asks for where a request says nothing.
struct GenerationDefaults {
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<int> top_k;
};

/// Everything but the prompt. Temperature and top_p are 1 where neither says anything.
engine::Request ToEngineRequest(const api::GenerationFields& fields,
                                const GenerationDefaults& defaults);

}  // namespace holmes::server
