/// How a model's makers want its tokens drawn.
#pragma once

#include <string>

#include "app/options.h"
#include "base/status.h"
#include "server/generation.h"
#include "weights/model_source.h"

namespace holmes::app {

/// temperature, top_p, top_k, min_p and repetition_penalty of a folder's generation_config.json;
/// all unset for a file that has no such thing. do_sample is not read: the API draws unless a
/// request's temperature is 0, as OpenAI's does. Errors: kDataLoss for a value that no request
/// could have (names key, value and range).
StatusOr<server::GenerationDefaults> DefaultsOf(const weights::ModelSource& source);

/// Options of these names, with the ranges of the API's fields.
void AddGenerationOptions(OptionTable& table, server::GenerationDefaults& values);

/// `first`, and `second` where `first` is unset.
server::GenerationDefaults Over(const server::GenerationDefaults& first,
                                const server::GenerationDefaults& second);

/// "temperature 0.6, top_p 0.9"; empty when nothing is set.
std::string Describe(const server::GenerationDefaults& defaults);

}  // namespace holmes::app
