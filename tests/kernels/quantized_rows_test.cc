#include "kernels/linear/quantized_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/isa_param.h"

namespace holmes::kernels {
namespace {

constexpr std::int64_t kBlock = QuantizedRows::kBlockInputs;

/// In the layout that rows quantised for `isa` have.
int IntegerOf(const QuantizedRows& rows, std::int64_t row, std::int64_t input, Isa isa) {
  const std::int8_t* block = rows.values(row) + input / kBlock * 2 * kBlock;
  if (isa == Isa::kAvx2) {
    constexpr std::int64_t kPlace[4] = {0, 2, 1, 3};
    std::int16_t value;
    std::memcpy(&value, block + 2 * (input % kBlock / 4 * 4 + kPlace[input % 4]), sizeof(value));
    return value;
  }
  return 256 * block[input % kBlock] + block[kBlock + input % kBlock];
}

class QuantizedRowsTest : public testing::TestWithParam<Isa> {};

TEST_P(QuantizedRowsTest, KeepsEachInputWithinHalfAStepAndItsSumsExactly) {
  std::mt19937 rng(3);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-60, 60);
  for (const std::int64_t k : {1, 15, 16, 17, 31, 32, 33, 576, 1000}) {
    QuantizedRows rows(5, k);
    std::vector<float> x(static_cast<std::size_t>(5 * k));
    for (float& value : x) value = std::ldexp(normal(rng), exponent(rng) / 20);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] *= std::ldexp(1.0F, static_cast<int>(i / 32 % 5) * 25 - 50);
    rows.Quantize(x.data(), k, 0, 5, 0, k, GetParam());
    for (std::int64_t r = 0; r < 5; ++r) {
      for (std::int64_t first = 0; first < k; first += kBlock) {
        const QuantizedRows::Block& block = rows.blocks(r)[first / kBlock];
        int sum[2] = {};
        for (std::int64_t i = first; i < first + kBlock; ++i) {
          const int integer = IntegerOf(rows, r, i, GetParam());
          ASSERT_LE(std::abs(integer), 32639);
          sum[(i - first) / 16] += integer;
          const double want = i < k ? x[static_cast<std::size_t>(r * k + i)] : 0.0;
          // Half a step, and the rounding of scale and product.
          ASSERT_NEAR(
              double{block.scale} * integer, want, block.scale * 0.5 + std::fabs(want) * 3e-7)
              << "k " << k << " row " << r << " input " << i;
        }
        EXPECT_EQ(block.sum[0], sum[0]);
        EXPECT_EQ(block.sum[1], sum[1]);
        EXPECT_EQ(block.scaled_sum, block.scale * static_cast<float>(sum[0] + sum[1]));
      }
    }
  }
}

TEST_P(QuantizedRowsTest, ARangeOfInputsLeavesTheOthers) {
  QuantizedRows rows(2, 96);
  std::vector<float> x(96, 1.0F);
  rows.Quantize(x.data(), 96, 1, 1, 0, 96, GetParam());
  const std::vector<float> part(32, -2.0F);
  rows.Quantize(part.data(), 32, 1, 1, 32, 32, GetParam());
  EXPECT_EQ(IntegerOf(rows, 0, 40, GetParam()), 0);
  for (std::int64_t i = 0; i < 96; ++i)
    EXPECT_EQ(IntegerOf(rows, 1, i, GetParam()), i / 32 == 1 ? -32639 : 32639) << i;
}

TEST_P(QuantizedRowsTest, WhatIsNotFiniteMarksItsBlock) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    QuantizedRows rows(1, 64);
    std::vector<float> x(64, 0.5F);
    x[33] = bad;
    rows.Quantize(x.data(), 64, 0, 1, 0, 64, GetParam());
    EXPECT_FALSE(std::isnan(rows.blocks(0)[0].scale));
    EXPECT_TRUE(std::isnan(rows.blocks(0)[1].scale));
    EXPECT_TRUE(std::isnan(rows.blocks(0)[1].scaled_sum));
    EXPECT_EQ(IntegerOf(rows, 0, 33, GetParam()), 0);
  }
}

TEST_P(QuantizedRowsTest, ZerosAndTheTiniestNumbersAreZero) {
  QuantizedRows rows(1, 64);
  std::vector<float> x(64, 0.0F);
  x[40] = std::numeric_limits<float>::denorm_min();
  x[41] = -1e-31F;
  rows.Quantize(x.data(), 64, 0, 1, 0, 64, GetParam());
  for (int b = 0; b < 2; ++b) EXPECT_EQ(rows.blocks(0)[b].scale, 0.0F);
  for (std::int64_t i = 0; i < 64; ++i) EXPECT_EQ(IntegerOf(rows, 0, i, GetParam()), 0);
  // The largest numbers do not overflow on the way.
  x.assign(64, std::numeric_limits<float>::max());
  rows.Quantize(x.data(), 64, 0, 1, 0, 64, GetParam());
  EXPECT_EQ(IntegerOf(rows, 0, 5, GetParam()), 32639);
  EXPECT_TRUE(std::isfinite(rows.blocks(0)[0].scale));
}

INSTANTIATE_TEST_SUITE_P(Isa, QuantizedRowsTest, testing::ValuesIn(AvailableIsas()), IsaParamName);

TEST(QuantizedRowsIsaTest, EveryLevelGivesTheSameNumbers) {
  std::mt19937 rng(7);
  std::normal_distribution<float> normal;
  constexpr std::int64_t kInputs = 205;
  std::vector<float> x(static_cast<std::size_t>(20 * kInputs));
  for (float& value : x) value = std::exp(3 * normal(rng)) * (rng() % 2 == 0 ? 1.0F : -1.0F);
  QuantizedRows want(20, kInputs);
  want.Quantize(x.data(), kInputs, 0, 20, 0, kInputs, Isa::kScalar);
  for (const Isa isa : AvailableIsas()) {
    QuantizedRows got(20, kInputs);
    got.Quantize(x.data(), kInputs, 0, 20, 0, kInputs, isa);
    for (std::int64_t r = 0; r < 20; ++r) {
      for (std::int64_t i = 0; i < 7 * kBlock; ++i)
        ASSERT_EQ(IntegerOf(got, r, i, isa), IntegerOf(want, r, i, Isa::kScalar)) << NameOf(isa);
      EXPECT_EQ(0, std::memcmp(got.blocks(r), want.blocks(r), 7 * sizeof(QuantizedRows::Block)));
    }
  }
}

}  // namespace
}  // namespace holmes::kernels
