#include "exec/cpu_backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "exec/cpu_step.h"
#include "exec/kv_arena.h"
#include "exec/memory_limit.h"
#include "exec/packed_model.h"
#include "kernels/sampling/sampler.h"
#include "kernels/team/team.h"

namespace holmes::exec {
namespace {

constexpr int kBlockTokens = kernels::KvLayerView::kBlockTokens;
constexpr double kMiB = 1024.0 * 1024.0;

kernels::SamplerParams ToSamplerParams(const sched::SamplingParams& p) {
  return {.temperature = p.temperature,
          .top_p = p.top_p,
          .top_k = p.top_k,
          .min_p = p.min_p,
          .presence_penalty = p.presence_penalty,
          .frequency_penalty = p.frequency_penalty,
          .repetition_penalty = p.repetition_penalty,
          .logit_bias = p.logit_bias,
          .top_logprobs = p.logprobs ? p.top_logprobs : -1};
}

sched::SampledToken ToSampledToken(const kernels::Sample& sample) {
  sched::SampledToken token{.id = sample.id, .logprob = sample.logprob, .top_logprobs = {}};
  for (const auto& [id, logprob] : sample.top_logprobs) token.top_logprobs.push_back({id, logprob});
  return token;
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(BackendInfo info,
             std::unique_ptr<kernels::Team> team,
             std::unique_ptr<PackedModel> model,
             std::vector<std::unique_ptr<KvArena>> arenas,
             kernels::Isa isa)
      : info_(std::move(info)),
        team_(std::move(team)),
        model_(std::move(model)),
        arenas_(std::move(arenas)),
        step_(*model_, arenas_, isa, *team_, info_.max_tokens_per_step, info_.max_rows_per_step) {
    for (int i = 0; i < team_->size(); ++i) samplers_.emplace_back(model_->vocab_size);
  }

  const BackendInfo& info() const override { return info_; }

  StatusOr<sched::StepResult> Execute(const sched::StepPlan& plan) override {
    HOLMES_CHECK(plan.num_tokens <= info_.max_tokens_per_step,
                 "the plan is over the step's token budget");
    HOLMES_CHECK(static_cast<int>(plan.rows.size()) <= info_.max_rows_per_step,
                 "the plan has too many rows");
    for (const sched::BlockCopy& copy : plan.copies) {
      arenas_[static_cast<std::size_t>(copy.kv_group)]->CopyBlock(copy.from, copy.to);
    }
    const std::span<const float> logits = step_.Run(plan);
    sched::StepResult result{.step = plan.step,
                             .rows = std::vector<sched::RowResult>(plan.rows.size())};
    std::vector<std::size_t> first_logit_row(plan.rows.size(), 0);
    std::size_t next = 0;
    for (std::size_t r = 0; r < plan.rows.size(); ++r) {
      first_logit_row[r] = next;
      if (plan.rows[r].sample) next += static_cast<std::size_t>(plan.rows[r].num_draft) + 1;
    }
    team_->Run([&](int member, int members) {
      for (std::size_t r = static_cast<std::size_t>(member); r < plan.rows.size();
           r += static_cast<std::size_t>(members)) {
        const std::size_t vocab = static_cast<std::size_t>(info_.vocab_size);
        SampleRow(plan.rows[r],
                  logits.subspan(plan.rows[r].sample ? first_logit_row[r] * vocab : 0),
                  samplers_[static_cast<std::size_t>(member)],
                  result.rows[r]);
      }
    });
    return result;
  }

 private:
  /// Draws at every wanted position until a draft token is not what the sampler draws there.
  void SampleRow(const sched::PlanRow& row,
                 std::span<const float> logits,
                 kernels::Sampler& sampler,
                 sched::RowResult& out) const {
    out.sequence = row.sequence;
    if (!row.sample) return;
    const auto vocab = static_cast<std::size_t>(info_.vocab_size);
    const auto prompt_tokens = static_cast<std::size_t>(row.prompt_tokens);
    std::vector<TokenId> output(row.history.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                          prompt_tokens, row.history.size())),
                                row.history.end());
    for (int d = 0; d <= row.num_draft; ++d) {
      const kernels::SampleKey key{.seed = row.sampling->seed,
                                   .sample_index = static_cast<std::uint32_t>(row.sample_index),
                                   .position = static_cast<std::uint64_t>(
                                       row.first_position + row.num_tokens - row.num_draft + d)};
      auto drawn = sampler.Draw(logits.subspan(static_cast<std::size_t>(d) * vocab, vocab),
                                ToSamplerParams(*row.sampling),
                                row.history.first(std::min(prompt_tokens, row.history.size())),
                                output,
                                key);
      if (!drawn.ok()) {
        out.error = std::string(drawn.status().message());
        return;
      }
      out.tokens.push_back(ToSampledToken(*drawn));
      output.push_back(drawn->id);
      if (d == row.num_draft ||
          row.tokens[static_cast<std::size_t>(row.num_tokens - row.num_draft + d)] != drawn->id)
        return;
    }
  }

  BackendInfo info_;
  std::unique_ptr<kernels::Team> team_;
  std::unique_ptr<PackedModel> model_;
  std::vector<std::unique_ptr<KvArena>> arenas_;
  CpuStep step_;
  std::vector<kernels::Sampler> samplers_;  // one per member
};

/// How the KV cache's size follows from the options.
StatusOr<int> PlanBlocks(const model::Graph& graph,
                         const CpuBackendOptions& options,
                         int context_tokens) {
  const std::int64_t block_bytes = KvArena::BlockBytes(graph.kv_groups[0]);
  const std::int64_t context_blocks = (context_tokens + kBlockTokens - 1) / kBlockTokens;
  const std::int64_t blocks = options.kv_cache_bytes > 0
                                  ? options.kv_cache_bytes / block_bytes
                                  : std::max<std::int64_t>(context_blocks, 24'576 / kBlockTokens);
  if (blocks < context_blocks) {
    return base::ResourceExhaustedError(
        fmt::format("a KV cache of {:.0f} MiB holds {} tokens, fewer than one context of {}; raise "
                    "--kv-cache-mib to {:.0f} or lower --context",
                    options.kv_cache_bytes / kMiB,
                    blocks * kBlockTokens,
                    context_tokens,
                    static_cast<double>(context_blocks * block_bytes) / kMiB + 1));
  }
  return static_cast<int>(std::min<std::int64_t>(blocks, 1 << 28));
}

Status CheckFits(const model::Graph& graph, const CpuBackendOptions& options, int num_blocks) {
  const std::int64_t weights = EstimateWeightBytes(graph);
  const std::int64_t kv = KvArena::BlockBytes(graph.kv_groups[0]) * num_blocks;
  const std::int64_t activations =
      CpuStep::EstimateBytes(graph, options.max_tokens_per_step, options.max_rows_per_step);
  const std::int64_t available = AvailableMemoryBytes();
  if (available < 0 || weights + kv + activations <= available) return OkStatus();
  return base::ResourceExhaustedError(
      fmt::format("the model does not fit into memory: {:.0f} MiB weights + {:.0f} MiB KV cache + "
                  "{:.0f} MiB activations > {:.0f} MiB available; lower --context or "
                  "--kv-cache-mib, or use a smaller quantisation",
                  static_cast<double>(weights) / kMiB,
                  static_cast<double>(kv) / kMiB,
                  static_cast<double>(activations) / kMiB,
                  static_cast<double>(available) / kMiB));
}

}  // namespace

StatusOr<std::unique_ptr<Backend>> CreateCpuBackend(const model::Graph& graph,
                                                    const CpuBackendOptions& options) {
  HOLMES_CHECK(graph.kv_groups.size() == 1,
               "graphs with several KV groups come with windowed models");
  BackendInfo info;
  info.vocab_size = graph.vocab_size;
  info.context_tokens = options.context_tokens > 0
                            ? std::min(options.context_tokens, graph.context_tokens)
                            : graph.context_tokens;
  info.max_tokens_per_step = options.max_tokens_per_step;
  info.max_rows_per_step = options.max_rows_per_step;
  HOLMES_ASSIGN_OR_RETURN(const int num_blocks, PlanBlocks(graph, options, info.context_tokens));
  HOLMES_RETURN_IF_ERROR(CheckFits(graph, options, num_blocks));

  auto team =
      std::make_unique<kernels::Team>(kernels::Team::Options{.num_threads = options.num_threads});
  HOLMES_ASSIGN_OR_RETURN(
      std::unique_ptr<PackedModel> model,
      PackedModel::Pack(graph, info.context_tokens, options.isa, *team, options.on_packed));
  std::vector<std::unique_ptr<KvArena>> arenas;
  for (const model::KvGroup& group : graph.kv_groups) {
    HOLMES_ASSIGN_OR_RETURN(arenas.emplace_back(), KvArena::Create(group, num_blocks));
    info.kv_groups.push_back({.num_blocks = num_blocks,
                              .block_tokens = kBlockTokens,
                              .num_layers = group.num_layers,
                              .window_tokens = group.window_tokens,
                              .block_bytes = static_cast<std::size_t>(KvArena::BlockBytes(group))});
  }
  info.device = fmt::format("cpu ({}, {} thread{})",
                            kernels::NameOf(options.isa),
                            team->size(),
                            team->size() == 1 ? "" : "s");
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(
      std::move(info), std::move(team), std::move(model), std::move(arenas), options.isa));
}

}  // namespace holmes::exec
