/// ModelSource over one .gguf file.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "weights/model_source.h"

namespace holmes::weights {

/// Errors as for ModelSource::Open.
StatusOr<std::unique_ptr<const ModelSource>> OpenGgufSource(const std::string& path);

}  // namespace holmes::weights
