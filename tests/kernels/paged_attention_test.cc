#include "kernels/attention/paged_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/isa_param.h"

namespace holmes::kernels {
namespace {

constexpr int kBlock = KvLayerView::kBlockTokens;

/// A cache of random keys and values, with the blocks of one sequence scattered over the pool.
struct Case {
  int kv_heads;
  int group;
  int head_dim;
  int length;  // positions in the cache
  int window;
  std::vector<float> keys, values;            // arena layout
  std::vector<float> flat_keys, flat_values;  // [length, kv_heads, head_dim]
  std::vector<float> queries;                 // [length, heads, head_dim]
  std::vector<BlockId> blocks;

  int heads() const { return kv_heads * group; }
  std::size_t token() const { return static_cast<std::size_t>(kv_heads * head_dim); }
  KvLayerView view() {
    return {
        .keys = keys.data(), .values = values.data(), .kv_heads = kv_heads, .head_dim = head_dim};
  }
};

Case MakeCase(int kv_heads, int group, int head_dim, int length, int window, unsigned seed) {
  Case c{kv_heads, group, head_dim, length, window, {}, {}, {}, {}, {}, {}};
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  const int num_blocks = (length + kBlock - 1) / kBlock;
  for (int i = 0; i < num_blocks; ++i) c.blocks.push_back({i + 3});
  std::shuffle(c.blocks.begin(), c.blocks.end(), rng);
  // What no position wrote must never be seen: NaN would show.
  const std::size_t arena = static_cast<std::size_t>((num_blocks + 3) * kBlock) * c.token();
  c.keys.assign(arena, std::numeric_limits<float>::quiet_NaN());
  c.values.assign(arena, std::numeric_limits<float>::quiet_NaN());
  for (int p = 0; p < length; ++p) {
    for (std::size_t i = 0; i < c.token(); ++i) {
      c.flat_keys.push_back(normal(rng));
      c.flat_values.push_back(normal(rng));
    }
    const std::size_t at = static_cast<std::size_t>(p) * c.token();
    WriteKv(c.view(),
            c.blocks[static_cast<std::size_t>(p / kBlock)],
            p % kBlock,
            c.flat_keys.data() + at,
            c.flat_values.data() + at);
  }
  const std::size_t query_elements = c.token() * static_cast<std::size_t>(group * length);
  for (std::size_t i = 0; i < query_elements; ++i) c.queries.push_back(2 * normal(rng));
  return c;
}

std::vector<float> Attend(Case& c, int first, int count, Isa isa) {
  const std::int64_t ld = static_cast<std::int64_t>(c.heads()) * c.head_dim;
  std::vector<float> out(static_cast<std::size_t>(ld * count), -7.0F);
  const AttentionRows rows{.q = c.queries.data() + first * ld,
                           .out = out.data(),
                           .ldq = ld,
                           .ldo = ld,
                           .num_tokens = count,
                           .first_position = first,
                           .blocks = c.blocks};
  const AttentionShape shape{.heads = c.heads(),
                             .scale = 1.0F / std::sqrt(static_cast<float>(c.head_dim)),
                             .window = c.window};
  for (int h = 0; h < c.kv_heads; ++h) PagedAttention(c.view(), rows, shape, h, isa);
  return out;
}

/// softmax(q K^T) V in float64, written from the definition.
std::vector<double> Reference(const Case& c, int position, int head) {
  const auto dim = static_cast<std::size_t>(c.head_dim);
  const std::size_t kv_at = static_cast<std::size_t>(head / c.group) * dim;
  const float* q = c.queries.data() + static_cast<std::size_t>(position * c.heads() + head) * dim;
  double sum = 0;
  std::vector<double> out(dim, 0.0);
  for (int p = 0; p <= position; ++p) {
    if (c.window > 0 && p <= position - c.window) continue;
    const std::size_t at = static_cast<std::size_t>(p) * c.token() + kv_at;
    double dot = 0;
    for (std::size_t d = 0; d < dim; ++d) dot += static_cast<double>(q[d]) * c.flat_keys[at + d];
    const double weight = std::exp(dot / std::sqrt(static_cast<double>(c.head_dim)));
    sum += weight;
    for (std::size_t d = 0; d < dim; ++d) out[d] += weight * c.flat_values[at + d];
  }
  for (double& x : out) x /= sum;
  return out;
}

class PagedAttentionTest : public testing::TestWithParam<Isa> {};

TEST_P(PagedAttentionTest, MatchesTheDefinition) {
  struct Shape {
    int kv_heads, group, head_dim, length, window;
  };
  const Shape shapes[] = {{1, 1, 16, 1, 0},
                          {3, 3, 64, 15, 0},
                          {3, 3, 64, 16, 0},
                          {3, 3, 64, 17, 0},
                          {2, 1, 128, 33, 0},
                          {1, 8, 64, 131, 0},
                          {2, 7, 80, 40, 0},
                          {1, 2, 24, 37, 0},
                          {1, 2, 1, 20, 0},
                          {2, 4, 64, 70, 19},
                          {1, 1, 256, 50, 16}};
  unsigned seed = 1;
  for (const Shape& s : shapes) {
    Case c = MakeCase(s.kv_heads, s.group, s.head_dim, s.length, s.window, seed++);
    const std::vector<float> out = Attend(c, 0, c.length, GetParam());
    for (int p = 0; p < c.length; ++p) {
      for (int h = 0; h < c.heads(); ++h) {
        const std::vector<double> want = Reference(c, p, h);
        const float* got = out.data() + static_cast<std::size_t>(p * c.heads() + h) * want.size();
        // float32 sums over up to 131 weights: a few ulp of values of order 1.
        for (std::size_t d = 0; d < want.size(); ++d) {
          ASSERT_NEAR(got[d], want[d], 2e-5)
              << "position " << p << " head " << h << " d " << d << " length " << s.length;
        }
      }
    }
  }
}

TEST_P(PagedAttentionTest, ARowIsTheSameAloneInAnyChunkAndInTheWhole) {
  Case c = MakeCase(3, 3, 64, 77, 0, 42);
  const std::vector<float> whole = Attend(c, 0, c.length, GetParam());
  const std::size_t row = static_cast<std::size_t>(c.heads() * c.head_dim);
  for (const int chunk : {1, 2, 5, 16, 31}) {
    for (int first = 0; first < c.length; first += chunk) {
      const std::vector<float> part =
          Attend(c, first, std::min(chunk, c.length - first), GetParam());
      for (std::size_t i = 0; i < part.size(); ++i) {
        ASSERT_EQ(part[i], whole[static_cast<std::size_t>(first) * row + i])
            << "chunk " << chunk << " first " << first;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, PagedAttentionTest, testing::ValuesIn(AvailableIsas()), IsaParamName);

}  // namespace
}  // namespace holmes::kernels
