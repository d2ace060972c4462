#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "kernels/cpu/isa.hpp"

#define KERNEL_FILE "kernels/cpu/simd_test.inl"
#include "kernels/cpu/each_isa.inl"

namespace fivefold::kernels {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct Setting {
  Isa isa;
};

class EachIsa : public testing::TestWithParam<Isa> {
 protected:
  Setting ctx_{GetParam()};
};

std::vector<Isa> isas_here() {
  std::vector<Isa> isas = {Isa::portable};
  if (best_isa() != Isa::portable) isas.push_back(Isa::avx2);
  if (best_isa() == Isa::avx512) isas.push_back(Isa::avx512);
  return isas;
}

INSTANTIATE_TEST_SUITE_P(Isas, EachIsa, testing::ValuesIn(isas_here()),
                         [](const auto& isa) { return std::string(name_of(isa.param)); });

TEST_P(EachIsa, ExpIsWithinTwoUnitsInTheLastPlace) {
  std::vector<float> x, y;
  for (int i = 0; i < 200'000; ++i) x.push_back(-87.0f + 175.0f * float(i) / 200'000);
  for (int i = -1000; i <= 1000; ++i) x.push_back(float(i) * 1e-4f);
  y.resize(x.size());
  PICK(ctx_, test_exp<float>)(x.data(), y.data(), int64_t(x.size()));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(double(x[i]));
    const double unit = std::exp2(std::floor(std::log2(exact)) - 23);
    worst = std::max(worst, std::abs(double(y[i]) - exact) / unit);
  }
  EXPECT_LE(worst, 2.0);
}

TEST_P(EachIsa, ExpOfTheExtremes) {
  // A tail of every length, so that partial vectors are seen too.
  for (int pad = 0; pad < 17; ++pad) {
    std::vector<float> x(size_t(pad), 1.0f);
    for (const float v : {-infinity, -1e30f, -87.4f, 0.0f, 88.2f, 1e30f, infinity, nan, -nan}) {
      x.push_back(v);
    }
    std::vector<float> y(x.size());
    PICK(ctx_, test_exp<float>)(x.data(), y.data(), int64_t(x.size()));
    const float* e = y.data() + pad;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(e[i], 0) << i;
    EXPECT_EQ(e[3], 1);
    EXPECT_NEAR(e[4] / std::exp(88.2f), 1, 1e-6);
    EXPECT_TRUE(std::isfinite(e[5]) && e[5] > 2e38f) << e[5];
    EXPECT_EQ(e[6], e[5]);
    EXPECT_TRUE(std::isnan(e[7]) && std::isnan(e[8]));
  }
}

TEST_P(EachIsa, NarrowingIsThatOfToBf16) {
  std::vector<float> x = {0.0f,        -0.0f,       infinity, -infinity,
                          1.00390625f, 1.01171875f, 3e38f,    1e-40f};
  const Random random(1, 2);
  for (uint64_t i = 0; i < 100'000; ++i) {
    x.push_back(std::bit_cast<float>(uint32_t(random.bits(i))));  // NaN of many kinds among them
  }
  std::vector<bf16> y(x.size());
  PICK(ctx_, test_narrow<float>)(x.data(), y.data(), int64_t(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(y[i].bits, to_bf16(x[i]).bits) << std::bit_cast<uint32_t>(x[i]);
  }
  std::vector<float> back(x.size());
  PICK(ctx_, test_widen<bf16>)(y.data(), back.data(), int64_t(y.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(back[i]), std::bit_cast<uint32_t>(to_float(y[i])));
  }
}

TEST_P(EachIsa, PartialVectorsTouchNothingBeyondTheirEnd) {
  for (int64_t n = 0; n <= 35; ++n) {
    std::vector<float> x(size_t(n) + 40, 7.0f), y(size_t(n) + 40, -1.0f);
    std::vector<bf16> low(size_t(n) + 40, to_bf16(-1.0f));
    PICK(ctx_, test_widen<float>)(x.data(), y.data(), n);
    PICK(ctx_, test_narrow<float>)(x.data(), low.data(), n);
    for (int64_t i = 0; i < n + 40; ++i) {
      EXPECT_EQ(y[size_t(i)], i < n ? 7 : -1);
      EXPECT_EQ(to_float(low[size_t(i)]), i < n ? 7 : -1);
    }
    EXPECT_EQ(PICK(ctx_, test_total<float>)(x.data(), n), 8 * float(n));
  }
}

TEST_P(EachIsa, ComparesAndRounds) {
  const std::vector<float> x = {0.5f, 1.5f, 2.5f, -0.5f, -2.6f, 1e10f, 3.2f, nan, 4.0f};
  std::vector<float> y(x.size() - 1);
  PICK(ctx_, test_round_lower<float>)(x.data(), y.data(), int64_t(y.size()));
  const std::vector<float> expected = {0, 2, 0, -3, -3, 3};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(y[i], expected[i]) << i;
  EXPECT_TRUE(std::isnan(y[6]));  // 3.2 < NaN is false: the NaN
  EXPECT_EQ(y[7], 4);
}

}  // namespace
}  // namespace fivefold::kernels
