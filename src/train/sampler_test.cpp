#include "train/sampler.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace fivefold::train {
namespace {

const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.15f),
                                   std::log(0.05f)};

std::vector<int> counts(const SamplingOptions& options, int draws) {
  std::vector<int> count(logits.size());
  for (int i = 0; i < draws; ++i) ++count[size_t(sample(logits, options, uint64_t(i)))];
  return count;
}

TEST(Sampler, ZeroTemperatureTakesTheLikeliest) {
  EXPECT_EQ(counts({.temperature = 0}, 100)[0], 100);
  const std::vector<float> tie = {1, 2, 2};
  EXPECT_EQ(sample(tie, {.temperature = 0}, 0), 1);
}

TEST(Sampler, FrequenciesFollowTheProbabilities) {
  const int n = 20000;
  const auto count = counts({}, n);
  const double p[] = {0.5, 0.3, 0.15, 0.05};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(count[i], n * p[i], 5 * std::sqrt(n * p[i] * (1 - p[i]))) << i;
  }
}

TEST(Sampler, TopKAndTopPCutTheTail) {
  EXPECT_EQ(counts({.top_k = 2}, 2000)[2], 0);
  EXPECT_EQ(counts({.top_p = 0.8}, 2000)[2], 0);
  EXPECT_GT(counts({.top_p = 0.81}, 2000)[2], 0);
  EXPECT_EQ(counts({.top_p = 0.01}, 200)[0], 200);  // never empty
}

TEST(Sampler, SeedAndIndexSettleTheToken) {
  EXPECT_EQ(sample(logits, {.seed = 3}, 9), sample(logits, {.seed = 3}, 9));
  EXPECT_NE(counts({.seed = 1}, 1000), counts({.seed = 2}, 1000));
}

}  // namespace
}  // namespace fivefold::train
