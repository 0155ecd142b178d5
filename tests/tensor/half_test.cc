#include "tensor/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace holmes::tensor {
namespace {

/// A half's value from its definition, in double.
double HalfValue(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(HalfTest, EveryHalfConvertsExactlyAndBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const std::uint16_t half = static_cast<std::uint16_t>(bits);
    const float value = HalfToFloat(half);
    if ((half & 0x7c00) == 0x7c00) {
      EXPECT_EQ(std::isnan(value), (half & 0x3ff) != 0);
      EXPECT_EQ(std::isinf(value), (half & 0x3ff) == 0);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value))));
      } else {
        EXPECT_EQ(FloatToHalf(value), half);
      }
      continue;
    }
    ASSERT_EQ(value, HalfValue(half)) << bits;
    ASSERT_EQ(std::signbit(value), (half & 0x8000) != 0);
    ASSERT_EQ(FloatToHalf(value), half);
  }
}

TEST(HalfTest, RoundsToNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {  // every pair of neighbours below infinity
    const std::uint16_t low = static_cast<std::uint16_t>(bits);
    const float a = HalfToFloat(low);
    const float b = HalfToFloat(static_cast<std::uint16_t>(bits + 1));
    const float middle = a + (b - a) / 2;  // exact: one bit more than a half has
    ASSERT_EQ(FloatToHalf(middle), (bits & 1) == 0 ? low : low + 1) << bits;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, a)), low) << bits;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, b)), low + 1) << bits;
  }
  EXPECT_EQ(FloatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(-1e30f), 0xfc00);
  EXPECT_EQ(FloatToHalf(1e-30f), 0);
}

TEST(HalfTest, EveryBFloat16ConvertsExactlyAndBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = BFloat16ToFloat(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(BFloat16ToFloat(FloatToBFloat16(value))));
    } else {
      ASSERT_EQ(FloatToBFloat16(value), bits);
    }
  }
}

TEST(HalfTest, BFloat16RoundsToNearestEven) {
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(FloatToBFloat16(std::numeric_limits<float>::max()), 0x7f80);
}

}  // namespace
}  // namespace holmes::tensor
