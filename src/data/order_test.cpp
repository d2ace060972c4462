#include "data/order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fivefold::data {
namespace {

TEST(PermutationTest, every_index_once) {
  for (const uint64_t size : {1, 2, 3, 4, 5, 7, 8, 9, 100, 1000, 4097}) {
    for (const uint64_t epoch : {0, 1}) {
      const Permutation permutation(size, 3, 4, epoch);
      std::vector<bool> seen(size);
      for (uint64_t i = 0; i < size; ++i) {
        const uint64_t at = permutation(i);
        ASSERT_LT(at, size);
        EXPECT_FALSE(seen[at]);
        seen[at] = true;
      }
    }
  }
}

TEST(PermutationTest, differs_by_seed_stream_and_epoch_and_looks_random) {
  constexpr uint64_t size = 1000;
  const Permutation base(size, 1, 1, 0);
  for (const Permutation& other :
       {Permutation(size, 2, 1, 0), Permutation(size, 1, 2, 0), Permutation(size, 1, 1, 1),
        Permutation(size, 1, 1, uint64_t{1} << 32)}) {
    int same = 0;
    for (uint64_t i = 0; i < size; ++i) same += base(i) == other(i) ? 1 : 0;
    EXPECT_LT(same, 10);  // 1 expected
  }
  // Neighbours land apart, and the first half is spread over the whole.
  double distance = 0, sum = 0;
  for (uint64_t i = 0; i + 1 < size; ++i) {
    distance += std::abs(double(base(i)) - double(base(i + 1)));
    if (i < size / 2) sum += double(base(i));
  }
  EXPECT_NEAR(distance / size, size / 3.0, 25);
  EXPECT_NEAR(sum / (size / 2.0), size / 2.0, 40);
}

TEST(PermutationTest, large_sizes_are_as_quick_as_small_ones) {
  const Permutation permutation(uint64_t{1} << 62, 1, 1, 0);
  EXPECT_NE(permutation(0), permutation(1));
  EXPECT_LT(permutation(12345), uint64_t{1} << 62);
}

TEST(MixtureTest, shares_are_kept_at_every_point) {
  const std::vector<double> cases[] = {{1},
                                       {1, 1},
                                       {1, 3},
                                       {0.5, 0.3, 0.2},
                                       {5, 0, 1},
                                       {1, 1, 1, 1, 1, 1, 1},
                                       {0.001, 0.999},
                                       {100, 1, 10, 1000}};
  for (const auto& weights : cases) {
    const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    const Mixture mixture(weights);
    std::vector<int64_t> counts(weights.size());
    for (int64_t n = 0; n < 5000; ++n) {
      const Mixture::Pick pick = mixture.pick(n);
      ASSERT_EQ(pick.index, counts[size_t(pick.source)]) << n;  // each source's own, in order
      ++counts[size_t(pick.source)];
      const double levels = std::ceil(std::log2(double(weights.size())));
      for (size_t s = 0; s < weights.size(); ++s) {
        ASSERT_NEAR(double(counts[s]), weights[s] / all * double(n + 1),
                    std::max(levels, 0.5) + 1e-6);
      }
    }
  }
}

TEST(MixtureTest, whole_numbers_come_out_exactly) {
  const std::vector<double> sizes = {17, 5, 120, 3};
  const Mixture mixture(sizes);
  std::vector<double> counts(sizes.size());
  for (int64_t n = 0; n < 145; ++n) ++counts[size_t(mixture.pick(n).source)];
  EXPECT_EQ(counts, sizes);
}

TEST(MixtureTest, does_not_drift_at_large_numbers) {
  const double weights[] = {1, 2};
  const Mixture mixture(weights);
  const int64_t n = int64_t{3} << 40;
  const Mixture::Pick pick = mixture.pick(n);
  EXPECT_NEAR(double(pick.index), double(n) / 3 * (pick.source == 0 ? 1 : 2), 2);
}

}  // namespace
}  // namespace fivefold::data
