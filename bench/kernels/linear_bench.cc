// All matrix products of one SmolLM2-135M step (30 layers, hidden 576, feed-forward 1536, keys and
// values 192, Q4_1; output 49152 x 576, Q8_0), on as many threads as the process may use:
// BM_Decode/rows and BM_Prefill/rows. Weights are random; each layer has its own, so that caches
// are as cold as in a real step.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "fma_probe.h"
#include "kernels/linear/linear.h"
#include "tensor/half.h"

namespace holmes::kernels {
namespace {

using tensor::BlockType;

constexpr std::int64_t kHidden = 576;
constexpr std::int64_t kWide = 1536;
constexpr std::int64_t kKv = 192;
constexpr std::int64_t kVocab = 49152;
constexpr int kLayers = 30;
constexpr std::int64_t kMaxRows = 512;

/// GFLOP/s of one core doing nothing but FMAs: the best of several short runs.
double PeakGflops() {
  static const double peak = [] {
    double best = 0;
    for (int i = 0; i < 20; ++i) {
      const auto start = std::chrono::steady_clock::now();
      const double fmas = RunFmaProbe(200000);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      best = std::max(best, 2e-9 * fmas / seconds.count());
    }
    return best;
  }();
  return peak;
}

/// HOLMES_BENCH_SIMD=avx512 measures a lower level.
Isa BenchIsa() {
  const char* name = std::getenv("HOLMES_BENCH_SIMD");
  return std::min(BestIsa(), IsaByName(name != nullptr ? name : "").value_or(BestIsa()));
}

PackedMatrix RandomMatrix(BlockType type, std::int64_t n, std::int64_t k, Team& team) {
  const tensor::BlockTypeInfo& info = tensor::InfoOf(type);
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(n * k / info.block_elements * info.block_bytes));
  std::minstd_rand rng(1);
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng() >> 8);
  const std::uint16_t halves[2] = {tensor::FloatToHalf(0.01F), tensor::FloatToHalf(-0.07F)};
  // Q4_1 has a scale and a minimum first, Q8_0 a scale.
  const std::size_t num = type == BlockType::kQ4_1 ? 2 : 1;
  for (std::size_t at = 0; at < bytes.size(); at += static_cast<std::size_t>(info.block_bytes))
    std::memcpy(bytes.data() + at, halves, 2 * num);
  StatusOr<PackedMatrix> packed =
      PackedMatrix::Pack({.type = type, .n = n, .k = k, .bytes = bytes}, BenchIsa(), &team);
  return *std::move(packed);
}

struct Layer {
  PackedMatrix query, key, value, output, gate, up, down;
};

struct Model {
  explicit Model(int num_threads) : team({.num_threads = num_threads}) {
    for (int i = 0; i < kLayers; ++i) {
      layers.push_back({RandomMatrix(BlockType::kQ4_1, kHidden, kHidden, team),
                        RandomMatrix(BlockType::kQ4_1, kKv, kHidden, team),
                        RandomMatrix(BlockType::kQ4_1, kKv, kHidden, team),
                        RandomMatrix(BlockType::kQ4_1, kHidden, kHidden, team),
                        RandomMatrix(BlockType::kQ4_1, kWide, kHidden, team),
                        RandomMatrix(BlockType::kQ4_1, kWide, kHidden, team),
                        RandomMatrix(BlockType::kQ4_1, kHidden, kWide, team)});
      for (const PackedMatrix* w : All(layers.back()))
        layer_bytes += w->bytes(), layer_weights += w->n() * w->k();
    }
    head = RandomMatrix(BlockType::kQ8_0, kVocab, kHidden, team);
    const std::vector<float> x(static_cast<std::size_t>(kMaxRows * kWide), 0.25F);
    hidden.Quantize(x.data(), kHidden, 0, kMaxRows, 0, kHidden, BenchIsa());
    wide.Quantize(x.data(), kWide, 0, kMaxRows, 0, kWide, BenchIsa());
    for (std::vector<float>* y : {&y0, &y1, &y2})
      y->resize(static_cast<std::size_t>(kMaxRows * kWide));
    logits.resize(static_cast<std::size_t>(kMaxRows * kVocab));
  }

  static std::vector<const PackedMatrix*> All(const Layer& l) {
    return {&l.query, &l.key, &l.value, &l.output, &l.gate, &l.up, &l.down};
  }

  LinearJob Job(const PackedMatrix& w, std::int64_t rows, std::vector<float>& y) const {
    return {.w = &w,
            .quantized = w.k() == kWide ? &wide : &hidden,
            .rows = rows,
            .y = y.data(),
            .ldy = w.n()};
  }

  void Step(std::int64_t rows, std::int64_t head_rows) {
    team.Run([&](int member, int) {
      for (const Layer& layer : layers) {
        const LinearJob qkv[] = {
            Job(layer.query, rows, y0), Job(layer.key, rows, y1), Job(layer.value, rows, y2)};
        LinearManyInRegion(qkv, team, member);
        team.Barrier();
        LinearInRegion(Job(layer.output, rows, y0), team, member);
        team.Barrier();
        const LinearJob gate_up[] = {Job(layer.gate, rows, y0), Job(layer.up, rows, y1)};
        LinearManyInRegion(gate_up, team, member);
        team.Barrier();
        LinearInRegion(Job(layer.down, rows, y0), team, member);
        team.Barrier();
      }
      LinearInRegion(Job(head, head_rows, logits), team, member);
    });
  }

  Team team;
  std::vector<Layer> layers;
  PackedMatrix head;
  std::int64_t layer_bytes = 0;
  std::int64_t layer_weights = 0;
  QuantizedRows hidden{kMaxRows, kHidden};
  QuantizedRows wide{kMaxRows, kWide};
  std::vector<float> y0, y1, y2, logits;
};

Model& SharedModel(int num_threads) {
  static std::unique_ptr<Model> model;
  if (model == nullptr || model->team.size() != num_threads) {
    model.reset();  // before the next one takes its memory
    model = std::make_unique<Model>(num_threads);
  }
  return *model;
}

void Report(benchmark::State& state,
            const Model& model,
            std::int64_t rows,
            std::int64_t head_rows) {
  const double steps = static_cast<double>(state.iterations());
  const double bytes = static_cast<double>(model.layer_bytes + model.head.bytes());
  const double flops =
      2.0 * static_cast<double>(model.layer_weights * rows + kVocab * kHidden * head_rows);
  using benchmark::Counter;
  state.counters["tokens/s"] = Counter(steps * static_cast<double>(rows), Counter::kIsRate);
  state.counters["weights_GB/s"] = Counter(1e-9 * steps * bytes, Counter::kIsRate);
  state.counters["GFLOP/s"] = Counter(1e-9 * steps * flops, Counter::kIsRate);
  if (BestIsa() != Isa::kScalar) {
    state.counters["of_peak_%"] =
        Counter(1e-9 * steps * flops / (PeakGflops() * model.team.size()) * 100, Counter::kIsRate);
  }
}

void BM_Decode(benchmark::State& state) {
  Model& model = SharedModel(static_cast<int>(state.range(1)));
  for (auto _ : state) model.Step(state.range(0), state.range(0));
  Report(state, model, state.range(0), state.range(0));
}

void BM_Prefill(benchmark::State& state) {
  Model& model = SharedModel(static_cast<int>(state.range(1)));
  for (auto _ : state) model.Step(state.range(0), 1);
  Report(state, model, state.range(0), 1);
}

void Threads(benchmark::internal::Benchmark* bench, std::vector<std::int64_t> rows) {
  bench->ArgNames({"rows", "threads"})->UseRealTime()->Unit(benchmark::kMillisecond);
  for (const int threads : {1, AllowedCpus()}) {
    for (const std::int64_t r : rows) bench->Args({r, threads});
    if (AllowedCpus() == 1) break;
  }
}
BENCHMARK(BM_Decode)->Apply([](auto* bench) { Threads(bench, {1, 2, 3, 4, 6, 8}); });
BENCHMARK(BM_Prefill)->Apply([](auto* bench) { Threads(bench, {16, 64, 512}); });

/// A region of nothing but one barrier more: what the team itself costs.
void BM_Region(benchmark::State& state) {
  Team team({.num_threads = static_cast<int>(state.range(0))});
  for (auto _ : state) team.Run([&](int, int) { team.Barrier(); });
}
BENCHMARK(BM_Region)->Arg(AllowedCpus())->UseRealTime();

}  // namespace
}  // namespace holmes::kernels
