#include "base/text.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace fivefold {
namespace {

TEST(Text, ClosestNamesTheLikelyKey) {
  const std::vector<std::string> keys = {"seq_len", "steps", "global_batch_size"};
  EXPECT_EQ(closest("seqlen", keys), "seq_len");
  EXPECT_EQ(closest("step", keys), "steps");
  EXPECT_EQ(closest("globl_batch_size", keys), "global_batch_size");
  EXPECT_EQ(closest("zzzz", keys), "");
}

}  // namespace
}  // namespace fivefold
