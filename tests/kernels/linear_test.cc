#include "kernels/linear/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/isa_param.h"
#include "tensor/dequantize.h"
#include "tensor/half.h"

namespace holmes::kernels {
namespace {

using tensor::BlockType;

struct Stored {
  BlockType type;
  std::int64_t n, k;
  std::vector<std::byte> bytes;
  WeightView view() const { return {.type = type, .n = n, .k = k, .bytes = bytes}; }
};

void PutHalf(std::byte* at, float value) {
  const std::uint16_t bits = tensor::FloatToHalf(value);
  std::memcpy(at, &bits, 2);
}

/// Random blocks with scales of sensible size; every bit pattern of the quants occurs.
Stored MakeStored(BlockType type, std::int64_t n, std::int64_t k, unsigned seed) {
  const tensor::BlockTypeInfo& info = tensor::InfoOf(type);
  Stored out{type,
             n,
             k,
             std::vector<std::byte>(
                 static_cast<std::size_t>(n * (k / info.block_elements) * info.block_bytes))};
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> uniform(-0.1F, 0.1F);
  for (std::byte& b : out.bytes) b = static_cast<std::byte>(rng());
  for (std::size_t at = 0; at < out.bytes.size();
       at += static_cast<std::size_t>(info.block_bytes)) {
    std::byte* block = out.bytes.data() + at;
    const float value = uniform(rng);
    switch (type) {
      case BlockType::kF32:
        std::memcpy(block, &value, 4);
        break;
      case BlockType::kF16:
        PutHalf(block, value);
        break;
      case BlockType::kBF16: {
        const std::uint16_t bits = tensor::FloatToBFloat16(value);
        std::memcpy(block, &bits, 2);
        break;
      }
      case BlockType::kQ6_K:
        PutHalf(block + 208, value / 100);
        break;
      case BlockType::kQ4_1:
        PutHalf(block + 2, uniform(rng));
        [[fallthrough]];
      case BlockType::kQ4_0:
      case BlockType::kQ8_0:
        PutHalf(block, value / 10);
        break;
      case BlockType::kQ4_K:
        PutHalf(block, value / 50);
        PutHalf(block + 2, uniform(rng) / 50);
        break;
      default:
        break;
    }
  }
  return out;
}

std::vector<float> RandomRows(std::int64_t rows, std::int64_t k, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<std::size_t>(rows * k));
  for (float& x : out) x = normal(rng);
  return out;
}

/// The distance of neighbouring integers around each x: its block's largest magnitude / 32639.
std::vector<double> QuantizationSteps(const std::vector<float>& x,
                                      std::int64_t rows,
                                      std::int64_t k) {
  std::vector<double> out(x.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < k; ++i) {
      double max = 0;
      for (std::int64_t j = i / 32 * 32; j < std::min(k, i / 32 * 32 + 32); ++j)
        max = std::max(max, std::fabs(double{x[static_cast<std::size_t>(r * k + j)]}));
      out[static_cast<std::size_t>(r * k + i)] = max / 32639;
    }
  }
  return out;
}

PackedMatrix PackOrDie(const Stored& stored, Isa isa) {
  StatusOr<PackedMatrix> packed = PackedMatrix::Pack(stored.view(), isa, nullptr);
  EXPECT_TRUE(packed.ok()) << packed.status().ToString();
  return *std::move(packed);
}

std::vector<float> Multiply(const PackedMatrix& w,
                            const std::vector<float>& x,
                            std::int64_t rows,
                            Team& team,
                            LinearOptions options = {},
                            float initial = 0.5F) {
  std::vector<float> y(static_cast<std::size_t>(rows * w.n()), initial);
  Linear({.w = &w,
          .x = x.data(),
          .ldx = w.k(),
          .rows = rows,
          .y = y.data(),
          .ldy = w.n(),
          .options = options},
         team);
  return y;
}

constexpr BlockType kTypes[] = {BlockType::kF32,
                                BlockType::kF16,
                                BlockType::kBF16,
                                BlockType::kQ8_0,
                                BlockType::kQ4_0,
                                BlockType::kQ4_1,
                                BlockType::kQ4_K,
                                BlockType::kQ6_K};

std::vector<std::int64_t> InputsFor(BlockType type) {
  const int block = tensor::InfoOf(type).block_elements;
  if (block == 1) return {1, 31, 32, 33, 67, 576, 1536};
  if (block == 32) return {32, 96, 576};
  return {256, 768};
}

class LinearTest : public testing::TestWithParam<Isa> {};

TEST_P(LinearTest, MatchesFloat64OverTypesAndShapes) {
  Team team({.num_threads = 2});
  unsigned seed = 1;
  for (const BlockType type : kTypes) {
    for (const std::int64_t k : InputsFor(type)) {
      for (const std::int64_t n : {1, 15, 16, 17, 63, 65, 131}) {
        const PackedMatrix w = PackOrDie(MakeStored(type, n, k, seed), GetParam());
        std::vector<float> dense(static_cast<std::size_t>(n * k));
        for (std::int64_t j = 0; j < n; ++j) w.DequantizeRow(j, dense.data() + j * k);
        const std::vector<float> bias = RandomRows(1, n, seed + 7);
        for (const std::int64_t rows : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 64}) {
          const std::vector<float> x = RandomRows(rows, k, ++seed);
          const std::vector<double> steps = QuantizationSteps(x, rows, k);
          const std::vector<float> y =
              Multiply(w, x, rows, team, {.bias = bias.data(), .accumulate = true});
          for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t j = 0; j < n; ++j) {
              double want = 0.5 + bias[static_cast<std::size_t>(j)];
              double magnitude = 1;
              double rounded = 0;  // what quantised activations may be off by
              for (std::int64_t i = 0; i < k; ++i) {
                const double weight = dense[static_cast<std::size_t>(j * k + i)];
                const double product = weight * x[static_cast<std::size_t>(r * k + i)];
                want += product;
                magnitude += std::fabs(product);
                if (IsInteger(w.format()))
                  rounded += std::fabs(weight) * steps[static_cast<std::size_t>(r * k + i)] / 2;
              }
              // A chain of k float32 additions: k ulp of the magnitudes at worst, its square root
              // in practice.
              ASSERT_NEAR(y[static_cast<std::size_t>(r * n + j)],
                          want,
                          3e-7 * std::sqrt(static_cast<double>(k) + 8) * magnitude + rounded)
                  << tensor::InfoOf(type).name << " n " << n << " k " << k << " rows " << rows
                  << " r " << r << " j " << j;
            }
          }
        }
      }
    }
  }
}

TEST_P(LinearTest, ARowIsTheSameBitsAloneInAnyBatchAndWithAnyTeam) {
  for (const BlockType type : kTypes) {
    const std::int64_t k = 768;
    const std::int64_t n = 209;
    const std::int64_t rows = 67;
    const PackedMatrix w = PackOrDie(MakeStored(type, n, k, 5), GetParam());
    const std::vector<float> x = RandomRows(rows, k, 6);
    Team one({.num_threads = 1});
    const std::vector<float> whole = Multiply(w, x, rows, one);
    for (const int threads : {2, 3}) {
      Team team({.num_threads = threads});
      EXPECT_EQ(Multiply(w, x, rows, team), whole) << tensor::InfoOf(type).name;
      for (const std::int64_t batch : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13}) {
        const std::int64_t first = 21;
        const std::vector<float> part(x.begin() + first * k, x.begin() + (first + batch) * k);
        const std::vector<float> y = Multiply(w, part, batch, team);
        EXPECT_TRUE(std::equal(y.begin(), y.end(), whole.begin() + first * n))
            << tensor::InfoOf(type).name << " batch " << batch;
      }
    }
  }
}

TEST_P(LinearTest, AMemberMayHaveNothingToDo) {
  Team team({.num_threads = 5});  // one panel, five members
  const PackedMatrix w = PackOrDie(MakeStored(BlockType::kQ8_0, 10, 64, 3), GetParam());
  Team one({.num_threads = 1});
  for (const std::int64_t rows : {1, 9, 300}) {
    const std::vector<float> x = RandomRows(rows, 64, 4);
    EXPECT_EQ(Multiply(w, x, rows, team), Multiply(w, x, rows, one));
  }
}

TEST_P(LinearTest, RowsLongerThanTheirMatrixKeepWhatLiesBetween) {
  Team team({.num_threads = 2});
  const PackedMatrix w = PackOrDie(MakeStored(BlockType::kF32, 18, 35, 3), GetParam());
  for (const std::int64_t rows : {1, 7, 20}) {
    const std::vector<float> dense = RandomRows(rows, 35, 4);
    std::vector<float> x(static_cast<std::size_t>(rows * 40),
                         std::numeric_limits<float>::quiet_NaN());
    for (std::int64_t r = 0; r < rows; ++r)
      std::copy_n(dense.begin() + r * 35, 35, x.begin() + r * 40);
    std::vector<float> y(static_cast<std::size_t>(rows * 21), -7.0F);
    Linear({.w = &w, .x = x.data(), .ldx = 40, .rows = rows, .y = y.data(), .ldy = 21}, team);
    const std::vector<float> want = Multiply(w, dense, rows, team);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t j = 0; j < 21; ++j) {
        EXPECT_EQ(y[static_cast<std::size_t>(r * 21 + j)],
                  j < 18 ? want[static_cast<std::size_t>(r * 18 + j)] : -7.0F);
      }
    }
  }
}

TEST_P(LinearTest, NanStaysInItsRow) {
  Team team({.num_threads = 2});
  const PackedMatrix w = PackOrDie(MakeStored(BlockType::kQ4_1, 40, 64, 3), GetParam());
  for (const std::int64_t rows : {3, 20}) {
    std::vector<float> x = RandomRows(rows, 64, 4);
    x[64 + 5] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> y = Multiply(w, x, rows, team);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t j = 0; j < 40; ++j)
        EXPECT_EQ(std::isnan(y[static_cast<std::size_t>(r * 40 + j)]), r == 1) << r;
    }
  }
}

TEST_P(LinearTest, ManyJobsEqualOneByOne) {
  Team team({.num_threads = 3});
  const PackedMatrix a = PackOrDie(MakeStored(BlockType::kQ4_1, 100, 96, 3), GetParam());
  const PackedMatrix b = PackOrDie(MakeStored(BlockType::kQ8_0, 33, 96, 4), GetParam());
  for (const std::int64_t rows : {1, 30}) {
    const std::vector<float> x = RandomRows(rows, 96, 5);
    QuantizedRows quantized(rows, 96);
    quantized.Quantize(x.data(), 96, 0, rows, 0, 96, GetParam());
    std::vector<float> ya(static_cast<std::size_t>(rows * 100));
    std::vector<float> yb(static_cast<std::size_t>(rows * 33));
    const LinearJob jobs[] = {
        {.w = &a, .quantized = &quantized, .rows = rows, .y = ya.data(), .ldy = 100},
        {.w = &b, .quantized = &quantized, .rows = rows, .y = yb.data(), .ldy = 33}};
    team.Run([&](int member, int) { LinearManyInRegion(jobs, team, member); });
    EXPECT_EQ(ya, Multiply(a, x, rows, team));
    EXPECT_EQ(yb, Multiply(b, x, rows, team));
  }
}

TEST(LinearIsaTest, EveryLevelGivesTheScalarReferencesBits) {
  Team team({.num_threads = 1});
  for (const BlockType type : kTypes) {
    const Stored stored = MakeStored(type, 50, 512, 9);
    const std::vector<float> x = RandomRows(11, 512, 10);
    const std::vector<float> want = Multiply(PackOrDie(stored, Isa::kScalar), x, 11, team);
    for (const Isa isa : AvailableIsas())
      EXPECT_EQ(Multiply(PackOrDie(stored, isa), x, 11, team), want) << tensor::InfoOf(type).name;
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, LinearTest, testing::ValuesIn(AvailableIsas()), IsaParamName);

TEST(PackedMatrixTest, RowsAreThoseOfTheStoredTensor) {
  for (const BlockType type : kTypes) {
    const tensor::BlockTypeInfo& info = tensor::InfoOf(type);
    for (const std::int64_t n : {1, 16, 63, 65, 577}) {
      const std::int64_t k = info.block_elements == 1 ? 67 : 3 * info.block_elements;
      const Stored stored = MakeStored(type, n, k, 11);
      const std::int64_t row_bytes = k / info.block_elements * info.block_bytes;
      for (const Isa isa : AvailableIsas()) {
        const PackedMatrix w = PackOrDie(stored, isa);
        std::vector<float> row(static_cast<std::size_t>(k));
        std::vector<float> want(row.size());
        for (std::int64_t j = 0; j < n; ++j) {
          w.DequantizeRow(j, row.data());
          tensor::DequantizeRow(type, stored.bytes.data() + j * row_bytes, k, want.data());
          ASSERT_EQ(row, want) << info.name << " row " << j << " of " << n;
        }
      }
    }
  }
}

TEST(PackedMatrixTest, TheExtremeScalesOfHalfPrecisionAreKept) {
  // Largest, smallest normal, smallest subnormal, and a full mantissa, each with both signs and
  // every int8.
  for (const std::uint16_t bits : {0x7BFF, 0x0400, 0x0001, 0x3FFF, 0x8001, 0xFBFF}) {
    Stored stored{BlockType::kQ8_0, 8, 32, std::vector<std::byte>(8 * 34)};
    for (int j = 0; j < 8; ++j) {
      std::byte* block = stored.bytes.data() + j * 34;
      std::memcpy(block, &bits, 2);
      for (int i = 0; i < 32; ++i) block[2 + i] = static_cast<std::byte>(j * 32 + i);
    }
    // A one in each place of x picks the weights out of the product itself, on every path.
    std::vector<float> identity(32 * 32, 0.0F);
    for (std::size_t i = 0; i < 32; ++i) identity[i * 32 + i] = 1.0F;
    Team team({.num_threads = 1});
    for (const Isa isa : AvailableIsas()) {
      const PackedMatrix w = PackOrDie(stored, isa);
      for (const std::int64_t rows : {1, 4, 32}) {
        const std::vector<float> y = Multiply(w, identity, rows, team, {}, 0.0F);
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t j = 0; j < 8; ++j) {
            const float want = tensor::HalfToFloat(bits) *
                               static_cast<float>(static_cast<std::int8_t>(j * 32 + r));
            // The one is kept as 32639 of its 32639th part, which rounds.
            ASSERT_NEAR(y[static_cast<std::size_t>(r * 8 + j)], want, std::fabs(want) * 0x1p-22)
                << bits << " " << r << " " << j;
          }
        }
      }
    }
  }
}

TEST(PackedMatrixTest, RefusesWhatItCannotHold) {
  Stored stored = MakeStored(BlockType::kF32, 4, 8, 1);
  stored.bytes.pop_back();
  EXPECT_EQ(PackedMatrix::Pack(stored.view(), Isa::kScalar, nullptr).status().code(),
            StatusCode::kInvalidArgument);
  const Stored q2 = MakeStored(BlockType::kQ2_K, 2, 256, 1);
  EXPECT_EQ(PackedMatrix::Pack(q2.view(), Isa::kScalar, nullptr).status().code(),
            StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace holmes::kernels
