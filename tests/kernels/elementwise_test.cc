#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/activation/gated.h"
#include "kernels/isa_param.h"
#include "kernels/norm/rms_norm.h"
#include "kernels/rope/rope.h"

namespace holmes::kernels {
namespace {

class ElementwiseTest : public testing::TestWithParam<Isa> {
 protected:
  std::vector<float> Random(std::size_t n, float scale) {
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> out(n);
    for (float& x : out) x = normal(rng_);
    return out;
  }
  std::mt19937 rng_{7};
};

TEST_P(ElementwiseTest, RmsNormMatchesFloat64) {
  for (const std::size_t n : {1U, 3U, 15U, 16U, 17U, 64U, 576U, 1001U}) {
    const std::vector<float> x = Random(n * 3, 5.0F);
    const std::vector<float> weight = Random(n, 1.0F);
    std::vector<float> y(x.size());
    const auto ld = static_cast<std::int64_t>(n);
    RmsNorm(x.data(), ld, 3, ld, weight.data(), 1e-5F, y.data(), ld, GetParam());
    for (std::size_t r = 0; r < 3; ++r) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += static_cast<double>(x[r * n + i]) * x[r * n + i];
      const double scale = 1 / std::sqrt(sum / static_cast<double>(n) + 1e-5);
      for (std::size_t i = 0; i < n; ++i)
        ASSERT_NEAR(y[r * n + i], x[r * n + i] * scale * weight[i], 2e-5);
    }
  }
}

TEST_P(ElementwiseTest, SiluMulMatchesFloat64AlsoAtTheExtremes) {
  std::vector<float> gate = Random(1003, 4.0F);
  const std::vector<float> extremes = {0, 100, -100, -80, 1e30F, -1e30F};
  std::copy(extremes.begin(), extremes.end(), gate.begin());
  const std::vector<float> before = gate;
  const std::vector<float> up = Random(1003, 2.0F);
  SiluMul(gate.data(), up.data(), 1003, GetParam());
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double x = before[i];
    const double want = x / (1 + std::exp(-x)) * up[i];
    ASSERT_NEAR(gate[i], want, 1e-6 + 1e-6 * std::fabs(want)) << "x = " << x;
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, ElementwiseTest, testing::ValuesIn(AvailableIsas()), IsaParamName);

TEST(RopeTest, TurnsPairsByPositionTimesFrequency) {
  const std::vector<double> inv_freq = {1.0, 0.25};
  const RopeTable table(inv_freq, 10, 1.0);
  for (const RopeLayout layout : {RopeLayout::kHalf, RopeLayout::kInterleaved}) {
    const std::size_t stride = layout == RopeLayout::kHalf ? 1 : 2;
    const std::size_t other = layout == RopeLayout::kHalf ? 2 : 1;
    std::vector<float> x = {
        1, 2, 3, 4, 5, 6, -1, -2, -3, -4, 7, 8};  // two heads of six; the last two elements stay
    const std::vector<float> before = x;
    ApplyRope(x.data(), 2, 6, table, 3, layout);
    for (std::size_t h = 0; h < 2; ++h) {
      for (std::size_t i = 0; i < 2; ++i) {
        const double angle = 3 * inv_freq[i];
        const double a = before[h * 6 + i * stride];
        const double b = before[h * 6 + i * stride + other];
        EXPECT_NEAR(x[h * 6 + i * stride], a * std::cos(angle) - b * std::sin(angle), 1e-6);
        EXPECT_NEAR(x[h * 6 + i * stride + other], b * std::cos(angle) + a * std::sin(angle), 1e-6);
      }
      EXPECT_EQ(x[h * 6 + 4], before[h * 6 + 4]);
      EXPECT_EQ(x[h * 6 + 5], before[h * 6 + 5]);
    }
  }
}

}  // namespace
}  // namespace holmes::kernels
