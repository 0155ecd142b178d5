// holmes bench: how fast an engine in this process is, or any server with OpenAI's API.
#include <fmt/format.h>

#include "app/bench_offline.h"
#include "app/bench_serving.h"
#include "app/command.h"
#include "app/load_engine.h"

namespace holmes::app {
namespace {

class BenchCommand final : public Command {
 public:
  void AddOptions(OptionTable& table) override {
    AddLoadOptions(table, load_);
    table.Add({.name = "url",
               .help = "measure the server at this address instead of a model in this process",
               .target = &serving_.url});
    table.Add({.name = "url-model",
               .help = "model name in requests to --url",
               .target = &serving_.model});
    table.Add({.name = "url-api-key", .help = "key for --url", .target = &serving_.api_key});
    table.Add({.name = "requests",
               .help = "requests to --url",
               .target = &serving_.num_requests,
               .low = 1,
               .high = 1e6});
    table.Add({.name = "concurrency",
               .help = "requests in flight to --url",
               .target = &serving_.concurrency,
               .low = 1,
               .high = 4096});
    table.Add(
        {.name = "rate",
         .help = "requests per second to --url, Poisson arrivals; 0 = as fast as answers come",
         .target = &serving_.rate,
         .low = 0,
         .high = 1e6});
    table.Add({.name = "prompt-words",
               .help = "words in each prompt to --url",
               .target = &serving_.prompt_words,
               .low = 1,
               .high = 1e6});
    table.Add({.name = "prompt-seed",
               .help = "prompts to --url are drawn from it; the same one sends the same prompts",
               .target = &serving_.seed,
               .low = 0,
               .high = 1e9});
    table.Add({.name = "output-tokens",
               .help = "tokens of each answer",
               .target = &output_tokens_,
               .low = 1,
               .high = 1e6});
    table.Add({.name = "prompt-tokens",
               .help = "tokens of the prefill that is measured",
               .target = &offline_.prompt_tokens,
               .low = 1,
               .high = 1e6});
    table.Add({.name = "max-batch",
               .help = "largest decode batch",
               .target = &offline_.max_batch,
               .low = 1,
               .high = 1024});
    table.Add({.name = "rounds",
               .help = "rounds of which the median counts",
               .target = &offline_.rounds,
               .low = 1,
               .high = 1000});
    table.Add({.name = "json", .help = "print JSON instead of a table", .target = &json_});
  }

  Status Run() override {
    HOLMES_ASSIGN_OR_RETURN(const std::vector<BenchRow> rows, Measure());
    fmt::print("{}", json_ ? BenchJson(rows) + "\n" : BenchTable(rows));
    return OkStatus();
  }

 private:
  StatusOr<std::vector<BenchRow>> Measure() {
    if (!serving_.url.empty()) {
      serving_.output_tokens = output_tokens_;
      return RunServingBench(serving_);
    }
    load_.prefix_cache = false;
    offline_.output_tokens = output_tokens_;
    HOLMES_ASSIGN_OR_RETURN(const LoadedModel loaded, LoadEngine(load_));
    return RunOfflineBench(*loaded.engine, offline_);
  }

  LoadOptions load_;
  OfflineBenchOptions offline_;
  ServingBenchOptions serving_;
  int output_tokens_ = 96;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeBenchCommand() { return std::make_unique<BenchCommand>(); }

}  // namespace holmes::app
