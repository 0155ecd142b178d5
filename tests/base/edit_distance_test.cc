#include "base/edit_distance.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holmes::base {
namespace {

TEST(EditDistanceTest, CountsEditsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("abc", ""), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("prot", "port"), 1);  // a swap
  EXPECT_EQ(EditDistance("prto", "prot"), 1);
}

TEST(EditDistanceTest, NearestIsTheFirstOfEquals) {
  const std::vector<std::string> names = {"port", "part", "host"};
  EXPECT_EQ(Nearest("prt", names), "port");
  EXPECT_EQ(Nearest("x", std::vector<std::string>{}), "");
}

}  // namespace
}  // namespace holmes::base
