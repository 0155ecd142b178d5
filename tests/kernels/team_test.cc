#include "kernels/team/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace holmes::kernels {
namespace {

class TeamTest : public testing::TestWithParam<int> {};

TEST_P(TeamTest, EveryMemberRunsOncePerRegion) {
  Team team({.num_threads = GetParam()});
  std::vector<int> runs(static_cast<std::size_t>(GetParam()), 0);
  for (int i = 0; i < 2000; ++i) {
    team.Run([&](int member, int members) {
      EXPECT_EQ(members, GetParam());
      ++runs[static_cast<std::size_t>(member)];  // no lock: a member is one thread
    });
  }
  for (const int count : runs) EXPECT_EQ(count, 2000);
}

TEST_P(TeamTest, ABarrierSeparatesPhases) {
  Team team({.num_threads = GetParam()});
  const auto size = static_cast<std::size_t>(GetParam());
  std::vector<int> phase(size, 0);  // plain ints: the barrier must make them visible
  std::atomic<int> wrong{0};
  team.Run([&](int member, int) {
    for (int step = 1; step <= 3000; ++step) {
      phase[static_cast<std::size_t>(member)] = step;
      team.Barrier();
      for (const int other : phase) wrong += other != step;
      team.Barrier();
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(TeamTest, EveryClaimGoesToOneMemberAndEachPhaseStartsAnew) {
  constexpr int kUnits = 50;
  Team team({.num_threads = GetParam()});
  std::vector<std::atomic<int>> taken(kUnits);
  for (int run = 0; run < 200; ++run) {
    team.Run([&](int, int) {
      for (int phase = 0; phase < 2; ++phase) {
        for (int unit = team.Claim(); unit < kUnits; unit = team.Claim())
          taken[static_cast<std::size_t>(unit)].fetch_add(1);
        team.Barrier();
      }
    });
  }
  for (const std::atomic<int>& count : taken) EXPECT_EQ(count.load(), 400);
}

INSTANTIATE_TEST_SUITE_P(Sizes, TeamTest, testing::Values(1, 2, 3, 7));

TEST(AllowedCpusTest, IsAtLeastOne) { EXPECT_GE(AllowedCpus(), 1); }

}  // namespace
}  // namespace holmes::kernels
