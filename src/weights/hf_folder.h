/// ModelSource over a Hugging Face model folder: config.json, tokenizer files and *.safetensors.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "weights/model_source.h"

namespace holmes::weights {

/// Which files hold the weights: model.safetensors, else what model.safetensors.index.json names,
/// else the only *.safetensors there. Errors as for ModelSource::Open.
StatusOr<std::unique_ptr<const ModelSource>> OpenHfFolder(const std::string& folder);

}  // namespace holmes::weights
