#include "app/bench_stats.h"

#include <gtest/gtest.h>

namespace holmes::app {
namespace {

TEST(BenchStatsTest, PercentilesInterpolate) {
  // numpy.percentile of the same samples.
  EXPECT_DOUBLE_EQ(Percentile({3, 1, 2, 4}, 50), 2.5);
  EXPECT_DOUBLE_EQ(Percentile({3, 1, 2, 4}, 95), 3.85);
  EXPECT_DOUBLE_EQ(Percentile({3, 1, 2, 4}, 0), 1);
  EXPECT_DOUBLE_EQ(Percentile({3, 1, 2, 4}, 100), 4);
  EXPECT_DOUBLE_EQ(Percentile({7}, 99), 7);
  EXPECT_DOUBLE_EQ(Percentile({}, 50), 0);
}

TEST(BenchStatsTest, JsonHoldsEveryValue) {
  EXPECT_EQ(BenchJson({{"a", {{"x", 1.5}}}, {"b", {}}}), R"([{"name":"a","x":1.5},{"name":"b"}])");
}

}  // namespace
}  // namespace holmes::app
