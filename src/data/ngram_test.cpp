#include "data/ngram.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/random.hpp"

namespace fivefold::data {
namespace {

TEST(ByteTrigramTest, a_pattern_costs_nothing_and_noise_all_its_bits) {
  std::string cycle;
  for (int i = 0; i < 5000; ++i) cycle += "abcd";
  ByteTrigram trigram;
  trigram.train(cycle);
  EXPECT_LT(trigram.bits_per_byte(cycle), 0.01);

  std::string noise;
  const Random random(1, 1);
  for (uint64_t i = 0; i < 100000; ++i) noise.push_back(char('a' + random.below(i, 16)));
  trigram.train(noise.substr(0, 90000));
  // Sixteen letters at random: 4 bits, and a little for what was counted but is chance.
  EXPECT_GT(trigram.bits_per_byte(noise.substr(90000)), 3.99);
  EXPECT_LT(trigram.bits_per_byte(noise.substr(90000)), 4.05);
}

TEST(ByteTrigramTest, probabilities_sum_to_one) {
  std::string text;
  const Random random(2, 1);
  for (uint64_t i = 0; i < 2000; ++i)
    text.push_back(char('a' + random.below(i, 4) * random.below(i + 5000, 3)));
  ByteTrigram trigram;
  trigram.train(text);
  // Only the last byte differs, so its probability is what the total changes by.
  for (const std::string context : {"", "a", "ab", "zz", "az"}) {
    const double before =
        context.empty() ? 0 : trigram.bits_per_byte(context) * double(context.size());
    double sum = 0;
    for (int c = 0; c < 256; ++c) {
      const std::string next = context + char(c);
      sum += std::exp2(before - trigram.bits_per_byte(next) * double(next.size()));
    }
    EXPECT_NEAR(sum, 1, 1e-9) << context;
  }
}

TEST(ByteTrigramTest, any_byte_is_possible) {
  ByteTrigram trigram;
  trigram.train(std::string(100, 'x'));
  EXPECT_LT(trigram.bits_per_byte("\xff\xfe\xfd"), 40);
}

}  // namespace
}  // namespace fivefold::data
