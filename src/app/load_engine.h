/// From what a user named to a running engine.
#pragma once

#include <memory>
#include <string>

#include "app/options.h"
#include "base/status.h"
#include "engine/engine.h"
#include "server/generation.h"

namespace holmes::app {

struct LoadOptions {
  std::string model;
  std::string model_name;  // empty = from the model's path or id
  int context_tokens = 0;  // 0 = the model's
  int kv_cache_mib = 0;    // 0 = room for one whole context, or 24,576 tokens
  int threads = 0;         // 0 = one per core that this process may use
  std::string simd = "auto";
  int max_tokens_per_step = 512;
  int max_sequences = 64;
  int max_prefill_tokens_per_step = 0;  // 0 = max_tokens_per_step
  int max_queued_requests = 4096;
  bool prefix_cache = true;
};

/// Options of a model and its engine, with LoadOptions' values as defaults.
void AddLoadOptions(OptionTable& table, LoadOptions& options);

struct LoadedModel {
  std::unique_ptr<engine::Engine> engine;
  std::string device;  // "cpu (amx, 2 threads)"
  int max_sequences = 0;
  server::GenerationDefaults defaults;  // the model's own
};

/// Opens the model, packs it and starts its engine; shows progress on standard error.
/// Errors: those of hub::Store::Resolve, weights::ModelSource::Open, model::BuildGraph,
/// text::Tokenizer::Create, DefaultsOf and the back end, with the model's path in front.
StatusOr<LoadedModel> LoadEngine(const LoadOptions& options);

}  // namespace holmes::app
