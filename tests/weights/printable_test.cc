#include "weights/printable.h"

#include <gtest/gtest.h>

namespace holmes::weights {
namespace {

TEST(PrintableTest, KeepsHostileBytesOutOfMessages) {
  EXPECT_EQ(Quoted("blk.0.attn_q.weight"), "'blk.0.attn_q.weight'");
  EXPECT_EQ(Quoted(std::string_view("\x1b[2J\n\0\xff", 7)), "'\\x1b[2J\\x0a\\x00\\xff'");
  EXPECT_EQ(Quoted(std::string(500, 'a')).size(), 80u + 5u);
  EXPECT_EQ(Quoted(""), "''");
}

}  // namespace
}  // namespace holmes::weights
