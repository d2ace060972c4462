#include "comm/fold.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace fivefold::comm {
namespace {

template <class T>
T fold_two(Reduce reduce, T a, T b) {
  const std::byte* sources[] = {reinterpret_cast<const std::byte*>(&a),
                                reinterpret_cast<const std::byte*>(&b)};
  T result{};
  std::byte* outputs[] = {reinterpret_cast<std::byte*>(&result)};
  fold(reduce, DTypeOf<T>::value, sources, outputs, 1);
  return result;
}

TEST(Fold, MaxAndMinGiveNanWhereverItStands) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Reduce reduce : {Reduce::max, Reduce::min}) {
    EXPECT_TRUE(std::isnan(fold_two(reduce, nan, 1.f)));
    EXPECT_TRUE(std::isnan(fold_two(reduce, 1.f, nan)));
    EXPECT_TRUE(std::isnan(fold_two(reduce, 1.0, double(nan))));
  }
  EXPECT_EQ(fold_two(Reduce::max, -3.f, 2.f), 2.f);
  EXPECT_EQ(fold_two(Reduce::min, -3.0, 2.0), -3.0);
}

TEST(Fold, IntegersWrapInsteadOfTrapping) {
  EXPECT_EQ(fold_two<int64_t>(Reduce::sum, std::numeric_limits<int64_t>::max(), 1),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(fold_two<int64_t>(Reduce::max, -5, 7), 7);
}

TEST(Fold, Bf16IsRoundedOnce) {
  // 1 + 2^-8 + 2^-8: in bf16 steps each addend is half a unit and is lost to the even neighbour; in
  // float32 both together make one unit.
  const bf16 one = to_bf16(1), half_unit = to_bf16(0x1p-8f);
  const std::byte* sources[] = {reinterpret_cast<const std::byte*>(&one),
                                reinterpret_cast<const std::byte*>(&half_unit),
                                reinterpret_cast<const std::byte*>(&half_unit)};
  bf16 result;
  std::byte* outputs[] = {reinterpret_cast<std::byte*>(&result)};
  fold(Reduce::sum, DType::bf16, sources, outputs, 1);
  EXPECT_EQ(to_float(result), 1 + 0x1p-7f);
  EXPECT_EQ(to_float(to_bf16(to_float(to_bf16(1 + 0x1p-8f)) + 0x1p-8f)), 1.f);
}

TEST(Fold, OutputsMayBeSources) {
  for (const int64_t count : {1, 511, 512, 513, 2000}) {
    std::vector<float> a(size_t(count), 1), b(size_t(count), 2), c(size_t(count), 4);
    std::iota(b.begin(), b.end(), 0.f);
    const std::vector<float> before = b;
    std::vector<std::byte*> outputs;
    for (auto* v : {&a, &b, &c}) outputs.push_back(reinterpret_cast<std::byte*>(v->data()));
    const std::vector<const std::byte*> sources(outputs.begin(), outputs.end());
    fold(Reduce::sum, DType::f32, sources, outputs, count);
    for (size_t i = 0; i < size_t(count); ++i) ASSERT_EQ(b[i], before[i] + 5) << i;
    EXPECT_EQ(a, b);
    EXPECT_EQ(c, b);
  }
}

TEST(Fold, SlicesCoverEveryElementOnce) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (const int64_t count : {0, 1, 5, 6, 7, 8, 1000}) {
      int64_t at = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Slice slice = slice_of(count, ranks, rank);
        EXPECT_EQ(slice.begin, at);
        EXPECT_GE(slice.count(), count / ranks);
        EXPECT_LE(slice.count(), count / ranks + 1);
        at = slice.end;
      }
      EXPECT_EQ(at, count);
    }
  }
}

TEST(Fold, AnAllReduceCostsTwiceTheBytesButOneShare) {
  // Equal shares: 2 (n-1)/n of the bytes, exactly.
  const Meter even = cost_of_all_reduce(1000, DType::f32, 4, 2);
  EXPECT_EQ(even.bytes_sent, 2 * 3 * 4000 / 4);
  EXPECT_EQ(even.messages_sent, 6);
  // Unequal shares: over all ranks still 2 (n-1) times the bytes.
  for (const int64_t count : {0, 1, 5, 1001}) {
    int64_t total = 0;
    for (int rank = 0; rank < 7; ++rank) {
      total += cost_of_all_reduce(count, DType::f64, 7, rank).bytes_sent;
    }
    EXPECT_EQ(total, 2 * 6 * count * 8) << count;
  }
  EXPECT_EQ(cost_of_all_reduce(5, DType::f32, 1, 0).bytes_sent, 0);
  EXPECT_EQ(cost_of_all_reduce(0, DType::f32, 3, 0).messages_sent, 0);
}

}  // namespace
}  // namespace fivefold::comm
