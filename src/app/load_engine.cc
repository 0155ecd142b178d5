#include "app/load_engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/generation_defaults.h"
#include "app/terminal.h"
#include "base/log.h"
#include "engine/engine_core.h"
#include "exec/cpu_backend.h"
#include "exec/cuda_devices.h"
#include "hub/store.h"
#include "kernels/cpu_features.h"
#include "kernels/team/team.h"
#include "model/description.h"
#include "model/graph.h"
#include "weights/model_source.h"

namespace holmes::app {
namespace {

// Shares of the bar: opening maps files and checks their structure, packing touches every byte.
constexpr double kOpened = 0.05;
constexpr double kTokenizerMade = 0.15;
constexpr double kPacked = 0.95;

StatusOr<kernels::Isa> ChooseIsa(const std::string& name) {
  const kernels::Isa best = kernels::BestIsa();
  // The AMX kernels measure no better than those of AVX-512 yet (docs/kernels-cpu.md).
  const kernels::Isa fastest = std::min(best, kernels::Isa::kAvx512);
  const kernels::Isa wanted = kernels::IsaByName(name).value_or(fastest);
  if (wanted > best) {
    return base::FailedPreconditionError(fmt::format(
        "--simd {}: this CPU or operating system does not have it; use --simd auto (here {})",
        name,
        kernels::NameOf(fastest)));
  }
  return wanted;
}

/// A GPU that stays idle without a word would look like a fault.
void TellUnusedGpus() {
  const auto devices = exec::ListCudaDevices();
  if (!devices.ok()) {
    base::LogWarning("{}", devices.status().ToString());
    return;
  }
  for (const exec::CudaDevice& device : *devices) {
    base::LogWarning(
        "GPU {} ({}, compute capability {}.{}, {:.0f} GiB) is not used: this version computes on "
        "the CPU",
        device.index,
        device.name,
        device.compute_major,
        device.compute_minor,
        static_cast<double>(device.memory_bytes) / (std::int64_t{1} << 30));
  }
}

std::string TokenText(const text::Tokenizer& tokenizer, const std::optional<TokenId>& id) {
  return id.has_value() ? std::string(tokenizer.TokenBytes(*id)) : "";
}

StatusOr<std::unique_ptr<exec::Backend>> MakeBackend(const LoadOptions& options,
                                                     const model::Graph& graph,
                                                     ProgressBar& bar) {
  HOLMES_ASSIGN_OR_RETURN(const kernels::Isa isa, ChooseIsa(options.simd));
  TellUnusedGpus();
  return exec::CreateCpuBackend(
      graph,
      {.isa = isa,
       .num_threads = options.threads > 0 ? options.threads : kernels::AllowedCpus(),
       .context_tokens = options.context_tokens,
       .kv_cache_bytes = std::int64_t{options.kv_cache_mib} << 20,
       .max_tokens_per_step = options.max_tokens_per_step,
       .max_rows_per_step = options.max_sequences,
       .on_packed = [&](int done, int total) {
         bar.Show(kTokenizerMade + (kPacked - kTokenizerMade) * done / total, "packing weights");
       }});
}

StatusOr<LoadedModel> LoadFrom(const LoadOptions& options,
                               const hub::ResolvedModel& found,
                               ProgressBar& bar) {
  bar.Show(0, "reading the file");
  HOLMES_ASSIGN_OR_RETURN(const std::unique_ptr<const weights::ModelSource> source,
                          weights::ModelSource::Open(found.path));
  HOLMES_ASSIGN_OR_RETURN(const std::vector<model::Description> descriptions,
                          model::BuiltInDescriptions());
  HOLMES_ASSIGN_OR_RETURN(const model::Description description,
                          model::FindDescription(descriptions, *source));
  HOLMES_ASSIGN_OR_RETURN(const model::Graph graph, model::BuildGraph(description, *source));
  bar.Show(kOpened, "reading the vocabulary");
  HOLMES_ASSIGN_OR_RETURN(text::VocabSpec vocab, source->Vocab());
  HOLMES_ASSIGN_OR_RETURN(std::unique_ptr<const text::Tokenizer> tokenizer,
                          text::Tokenizer::Create(std::move(vocab)));
  bar.Show(kTokenizerMade, "packing weights");
  HOLMES_ASSIGN_OR_RETURN(std::unique_ptr<exec::Backend> backend, MakeBackend(options, graph, bar));
  bar.Show(kPacked, "starting the engine");

  engine::ModelInfo info{.name = options.model_name.empty() ? found.name : options.model_name,
                         .architecture = std::string(source->architecture()),
                         .vocab_size = graph.vocab_size,
                         .context_tokens = backend->info().context_tokens,
                         .chat_template = std::string(source->chat_template()),
                         .bos_text = TokenText(*tokenizer, tokenizer->spec().bos),
                         .eos_text = TokenText(*tokenizer, tokenizer->spec().eos)};
  LoadedModel out;
  HOLMES_ASSIGN_OR_RETURN(out.defaults, DefaultsOf(*source));
  out.device = backend->info().device;
  out.max_sequences = options.max_sequences;
  HOLMES_ASSIGN_OR_RETURN(
      out.engine,
      engine::CreateEngine({.max_prefill_tokens_per_step = options.max_prefill_tokens_per_step,
                            .max_queued_requests = options.max_queued_requests,
                            .prefix_reuse = options.prefix_cache},
                           std::move(backend),
                           std::move(tokenizer),
                           std::move(info),
                           source->EndOfGeneration()));
  bar.Show(1, "loaded");
  return out;
}

}  // namespace

void AddLoadOptions(OptionTable& table, LoadOptions& options) {
  table.Add({.name = "model",
             .positional = true,
             .value_name = "MODEL",
             .help = "a .gguf file, a folder with config.json and *.safetensors, or a name from "
                     "`holmes list`",
             .target = &options.model});
  table.Add({.name = "model-name",
             .value_name = "NAME",
             .help = "what clients call the model; without it, the model's own name",
             .target = &options.model_name});
  table.Add({.name = "context",
             .value_name = "TOKENS",
             .help = "longest prompt and answer together; 0 is the model's own limit",
             .target = &options.context_tokens,
             .low = 0,
             .high = 1 << 24});
  table.Add(
      {.name = "kv-cache-mib",
       .value_name = "MIB",
       .help =
           "memory for keys and values; 0 is room for one whole context, at least 24,576 tokens",
       .target = &options.kv_cache_mib,
       .low = 0,
       .high = 1 << 24});
  table.Add({.name = "threads",
             .help = "threads that compute; 0 is one per core",
             .target = &options.threads,
             .low = 0,
             .high = 1024});
  table.Add({.name = "simd",
             .value_name = "LEVEL",
             .help = "instruction set; auto is the fastest that this CPU has, amx is for trying",
             .target = &options.simd,
             .choices = {"auto", "amx", "avx512", "avx2", "scalar"}});
  table.Add({.name = "max-sequences",
             .help = "answers that are generated at the same time",
             .target = &options.max_sequences,
             .low = 1,
             .high = 4096});
  table.Add({.name = "max-tokens-per-step",
             .value_name = "TOKENS",
             .help = "work of one step over all requests",
             .target = &options.max_tokens_per_step,
             .low = 1,
             .high = 1 << 16});
  table.Add({.name = "max-prefill-tokens-per-step",
             .value_name = "TOKENS",
             .help = "prompt tokens of a step while answers stream: fewer keep them smooth, more "
                     "let waiting requests in sooner; 0 is no limit of its own",
             .target = &options.max_prefill_tokens_per_step,
             .low = 0,
             .high = 1 << 16});
  table.Add({.name = "max-queued-requests",
             .help = "requests that may wait; more are refused",
             .target = &options.max_queued_requests,
             .low = 1,
             .high = 1 << 20});
  table.Add({.name = "prefix-cache",
             .help = "keep keys and values for prompts that begin alike",
             .target = &options.prefix_cache});
}

StatusOr<LoadedModel> LoadEngine(const LoadOptions& options) {
  HOLMES_ASSIGN_OR_RETURN(const hub::ResolvedModel found,
                          hub::Store(hub::DefaultStoreDir()).Resolve(options.model));
  ProgressBar bar("loading " + found.name);
  return LoadFrom(options, found, bar);
}

}  // namespace holmes::app
