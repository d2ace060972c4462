#include "base/quantity.hpp"

#include <gtest/gtest.h>

namespace fivefold {
namespace {
using namespace literals;

template <class A, class B>
concept Addable = requires(A a, B b) { a + b; };
static_assert(Addable<Bytes, Bytes>);
static_assert(!Addable<Bytes, Seconds>);  // units do not mix

TEST(Quantity, DividesIntoTheRightUnit) {
  const Seconds t = 8_GiB / 400_GBps;
  EXPECT_DOUBLE_EQ(t.value, 8.0 * (1 << 30) / 400e9);
  EXPECT_DOUBLE_EQ(1_GiB / 1_MiB, 1024);
}

TEST(Quantity, ReadsWell) {
  EXPECT_EQ(to_string(0_B), "0 B");
  EXPECT_EQ(to_string(Seconds{0}), "0 s");
  EXPECT_EQ(to_string(1536_B), "1.50 KiB");
  EXPECT_EQ(to_string(Seconds{0.0123}), "12.3 ms");
  EXPECT_EQ(to_string(FlopsPerSecond{137e9}), "137 GFLOP/s");
  EXPECT_EQ(grouped(8030261248), "8,030,261,248");
  EXPECT_EQ(grouped(-1234), "-1,234");
  EXPECT_EQ(grouped(12), "12");
}

}  // namespace
}  // namespace fivefold
