#include "base/random.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace fivefold {
namespace {

// Known answers published with Random123 (kat_vectors, philox4x32 10).
TEST(Random, PhiloxKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (Philox{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Philox{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Philox{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, NormalHasUnitMoments) {
  const Random random(7, stream_of("moments"));
  const int n = 100000;
  double sum = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal(uint64_t(i));
    sum += x, squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(double(n)));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2.0 / n));
}

TEST(Random, StreamsAndSeedsDiffer) {
  EXPECT_NE(Random(1, 0).bits(0), Random(2, 0).bits(0));
  EXPECT_NE(Random(1, 0).bits(0), Random(1, 1).bits(0));
  EXPECT_EQ(Random(1, 1).bits(5), Random(1, 1).bits(5));
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_LT(Random(3, 4).below(i, 7), 7u);
}

}  // namespace
}  // namespace fivefold
