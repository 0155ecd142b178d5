// Logits and greedy continuations against transformers in float32 (tests/model/data/README.md), and
// law 3: a row's result is the same bits whole, in chunks, alone, in a batch and with any number of
// threads.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "exec/cpu_backend.h"
#include "exec/cpu_step.h"
#include "kernels/isa_param.h"
#include "model/graph.h"

namespace holmes::exec {
namespace {

namespace json = boost::json;
constexpr int kBlocks = 64;
constexpr int kMaxTokens = 160;

std::filesystem::path DataDir() { return HOLMES_MODEL_DATA_DIR; }

json::value ReadJson(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return json::parse(text.str());
}

std::vector<TokenId> Ids(const json::value& value) {
  return json::value_to<std::vector<TokenId>>(value);
}

/// A model with its buffers, driven below the scheduler.
class Runner {
 public:
  static std::unique_ptr<Runner> Create(const std::string& path, kernels::Isa isa, int threads) {
    auto source = weights::ModelSource::Open(path);
    EXPECT_TRUE(source.ok()) << source.status().ToString();
    auto descriptions = model::BuiltInDescriptions();
    auto description = model::FindDescription(*descriptions, **source);
    EXPECT_TRUE(description.ok()) << description.status().ToString();
    auto graph = model::BuildGraph(*description, **source);
    EXPECT_TRUE(graph.ok()) << graph.status().ToString();
    auto out = std::make_unique<Runner>(threads);
    auto packed = PackedModel::Pack(*graph, 256, isa, out->team_);
    EXPECT_TRUE(packed.ok()) << packed.status().ToString();
    out->model_ = *std::move(packed);
    out->arenas_.push_back(*KvArena::Create(graph->kv_groups[0], kBlocks));
    out->step_ = std::make_unique<CpuStep>(
        *out->model_, out->arenas_, isa, out->team_, kMaxTokens, kMaxTokens);
    return out;
  }
  explicit Runner(int threads) : team_({.num_threads = threads}) {}

  struct Row {
    std::vector<TokenId> tokens;
    int first_position = 0;
    int first_block = 0;
  };
  /// The logits of every token of every row, in order.
  std::vector<float> Run(const std::vector<Row>& rows) {
    sched::StepPlan plan;
    for (const Row& row : rows) {
      sched::PlanRow out;
      out.tokens = row.tokens;
      out.num_tokens = static_cast<int>(row.tokens.size());
      out.first_position = row.first_position;
      out.sample = true;
      out.num_draft = out.num_tokens - 1;
      sched::BlockTable table;
      for (int b = 0; b < kBlocks / 4; ++b)
        table.blocks.push_back({(row.first_block + b * 5) % kBlocks});
      out.tables = {table};
      plan.num_tokens += out.num_tokens;
      plan.rows.push_back(std::move(out));
    }
    const std::span<const float> logits = step_->Run(plan);
    return {logits.begin(), logits.end()};
  }
  std::size_t vocab() const { return static_cast<std::size_t>(model_->vocab_size); }

 private:
  kernels::Team team_;
  std::unique_ptr<PackedModel> model_;
  std::vector<std::unique_ptr<KvArena>> arenas_;
  std::unique_ptr<CpuStep> step_;
};

/// Largest difference at the kept ids; the argmax must agree up to near-ties.
void ExpectLogits(const float* logits,
                  std::size_t vocab,
                  const json::value& want,
                  const std::vector<TokenId>& probe,
                  double tolerance,
                  const std::string& where) {
  const auto& values = want.at("logits").as_array();
  for (std::size_t i = 0; i < probe.size(); ++i) {
    ASSERT_NEAR(logits[probe[i]], values[i].to_number<double>(), tolerance)
        << where << " id " << probe[i];
  }
  // The reference's best is ours too, unless the two are nearer than both errors together.
  EXPECT_GE(logits[want.at("argmax").to_number<std::int64_t>()],
            *std::max_element(logits, logits + vocab) - 2 * tolerance)
      << where;
  double sum = 0;
  for (std::size_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(logits[i]));
  EXPECT_NEAR(std::log(sum), want.at("logsumexp").to_number<double>(), tolerance) << where;
}

void ExpectGolden(Runner& runner, const json::value& golden, double tolerance) {
  const std::vector<TokenId> prompt = Ids(golden.at("prompt"));
  const std::vector<TokenId> probe = Ids(golden.at("probe"));
  const std::vector<float> whole = runner.Run({{prompt, 0, 0}});
  for (std::size_t p = 0; p < prompt.size(); ++p) {
    ExpectLogits(whole.data() + p * runner.vocab(),
                 runner.vocab(),
                 golden.at("positions").at(p),
                 probe,
                 tolerance,
                 "position " + std::to_string(p));
  }
  const std::vector<TokenId> greedy = Ids(golden.at("greedy"));
  int position = static_cast<int>(prompt.size());
  for (std::size_t i = 1; i < greedy.size(); ++i) {
    const std::vector<float> logits = runner.Run({{{greedy[i - 1]}, position++, 0}});
    ExpectLogits(logits.data(),
                 runner.vocab(),
                 golden.at("greedy_steps").at(i),
                 probe,
                 tolerance,
                 "greedy step " + std::to_string(i));
  }
}

void ExpectLaw3(const std::string& path, kernels::Isa isa, const std::vector<TokenId>& prompt) {
  const auto runner = Runner::Create(path, isa, 1);
  const std::vector<float> whole = runner->Run({{prompt, 0, 0}});
  const auto slice = [&](std::size_t from, std::size_t count) {
    return std::vector<float>(
        whole.begin() + static_cast<std::ptrdiff_t>(from * runner->vocab()),
        whole.begin() + static_cast<std::ptrdiff_t>((from + count) * runner->vocab()));
  };
  for (const int threads : {1, 2, 3}) {
    const auto other = Runner::Create(path, isa, threads);
    for (const std::size_t chunk : {1U, 7U, 16U, 33U}) {
      for (std::size_t at = 0; at < prompt.size(); at += chunk) {
        const std::size_t count = std::min<std::size_t>(chunk, prompt.size() - at);
        const std::vector<TokenId> part(prompt.begin() + static_cast<std::ptrdiff_t>(at),
                                        prompt.begin() + static_cast<std::ptrdiff_t>(at + count));
        ASSERT_EQ(other->Run({{part, static_cast<int>(at), 1}}), slice(at, count))
            << "chunk " << chunk << " threads " << threads;
      }
    }
    const std::vector<TokenId> noise(prompt.rbegin(), prompt.rbegin() + 20);
    const std::vector<float> batch =
        other->Run({{noise, 0, 2}, {prompt, 0, 3}, {{noise[0]}, 0, 4}});
    const std::vector<float> middle(
        batch.begin() + static_cast<std::ptrdiff_t>(20 * runner->vocab()),
        batch.end() - static_cast<std::ptrdiff_t>(runner->vocab()));
    ASSERT_EQ(middle, whole) << "in a batch, threads " << threads;
  }
}

using TinyParam = std::tuple<const char*, kernels::Isa>;
class TinyModelTest : public testing::TestWithParam<TinyParam> {};

TEST_P(TinyModelTest, LogitsMatchTransformers) {
  const auto& [name, isa] = GetParam();
  const auto runner = Runner::Create((DataDir() / name).string(), isa, 2);
  // float32 on both sides; logits are of order 10, sums run over at most 64 terms.
  ExpectGolden(*runner, ReadJson(DataDir() / name / "golden.json"), 2e-4);
}

TEST_P(TinyModelTest, SameBitsWholeChunkedAloneAndBatched) {
  const auto& [name, isa] = GetParam();
  ExpectLaw3((DataDir() / name).string(),
             isa,
             Ids(ReadJson(DataDir() / name / "golden.json").at("prompt")));
}

INSTANTIATE_TEST_SUITE_P(
    Models,
    TinyModelTest,
    testing::Combine(testing::Values("tiny_llama", "tiny_llama_sharded", "tiny_qwen2"),
                     testing::ValuesIn(kernels::AvailableIsas())),
    [](const testing::TestParamInfo<TinyParam>& test) {
      return std::string(std::get<0>(test.param)) + "_" +
             std::string(kernels::NameOf(std::get<1>(test.param)));
    });

/// The packaged model, where it has been fetched (make test does).
std::string SmolLm2Path() {
  const char* path = std::getenv("HOLMES_TEST_MODEL");
  return path != nullptr && std::filesystem::exists(path) ? path : "";
}

TEST(SmolLm2Test, LogitsMatchTransformersOnTheDequantisedWeights) {
  if (SmolLm2Path().empty())
    GTEST_SKIP() << "HOLMES_TEST_MODEL does not name SmolLM2-135M-Instruct.Q4_1.gguf";
  const auto runner = Runner::Create(SmolLm2Path(), kernels::BestIsa(), 2);
  // Thirty layers with activations kept to 2^-16 of their block's largest, logits of order 20.
  ExpectGolden(*runner, ReadJson(DataDir() / "smollm2_logits.json"), 5e-3);
}

TEST(SmolLm2Test, SameBitsWholeChunkedAloneAndBatched) {
  if (SmolLm2Path().empty())
    GTEST_SKIP() << "HOLMES_TEST_MODEL does not name SmolLM2-135M-Instruct.Q4_1.gguf";
  if (kernels::BestIsa() == kernels::Isa::kScalar)
    GTEST_SKIP() << "too slow without SIMD; the tiny models cover the scalar level";
  ExpectLaw3(SmolLm2Path(),
             kernels::BestIsa(),
             Ids(ReadJson(DataDir() / "smollm2_logits.json").at("prompt")));
}

}  // namespace
}  // namespace holmes::exec
