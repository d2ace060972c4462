#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/ops.hpp"

namespace fivefold::kernels {
namespace {

struct World {
  ThreadPool pool;
  Memory memory;
  Context ctx{.pool = pool, .memory = memory};
  explicit World(int threads = 1, Backend backend = Backend::cpu, Isa isa = best_isa())
      : pool(threads) {
    ctx.backend = backend;
    ctx.isa = isa;
  }
};

std::vector<Isa> isas_here() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::portable, Isa::avx2, Isa::avx512}) {
    if (isa <= best_isa()) isas.push_back(isa);
  }
  return isas;
}

// Rows of `logits` with one target each: losses, then the gradient in place.
struct Outcome {
  std::vector<float> logits, losses, lse;
  Outcome(World& world, std::vector<float> values, std::vector<int32_t> targets)
      : logits(std::move(values)), losses(targets.size()), lse(targets.size()) {
    const auto rows = int64_t(targets.size()), classes = int64_t(logits.size()) / rows;
    const View view(logits.data(), DType::f32, {rows, classes});
    const View loss_view(losses.data(), DType::f32, {rows}),
        lse_view(lse.data(), DType::f32, {rows});
    const ConstView target_view(targets.data(), DType::i32, {rows});
    cross_entropy_forward(world.ctx, view, target_view, loss_view, lse_view);
    cross_entropy_backward(world.ctx, view, target_view, lse_view, 1);
  }
};

TEST(CrossEntropy, ExtremeLogitsStayFinite) {
  for (const Backend backend : {Backend::reference, Backend::cpu}) {
    for (const Isa isa : isas_here()) {
      World world(1, backend, isa);
      std::vector<float> logits(40, -1e30f);
      logits[3] = 1e30f, logits[39] = 9.9e29f;
      const Outcome high(world, logits, {3});
      EXPECT_EQ(high.losses[0], 0);
      for (const float g : high.logits) EXPECT_EQ(g, 0);

      const Outcome low(world, std::vector<float>(40, -1e6f), {39});
      EXPECT_NEAR(low.losses[0], std::log(40.0), 0.07);  // half a unit of the last place of 1e6
      EXPECT_NEAR(low.logits[39], 1 / 40.0 - 1, 1e-2);

      std::vector<float> wrong(40, 0);
      wrong[0] = 1e4f;
      const Outcome far(world, wrong, {1});
      EXPECT_NEAR(far.losses[0], 1e4, 1e-3);
      EXPECT_NEAR(far.logits[0], 1, 1e-6);
      EXPECT_NEAR(far.logits[1], -1, 1e-6);
      EXPECT_EQ(far.logits[2], 0);
    }
  }
}

TEST(CrossEntropy, ANaNIsNotHidden) {
  for (const Backend backend : {Backend::reference, Backend::cpu}) {
    for (const Isa isa : isas_here()) {
      for (const size_t at : {0, 5, 16, 39, 2000, 2048}) {
        World world(1, backend, isa);
        std::vector<float> logits(2 * 2049, 1.0f);
        logits[at] = std::nanf("");
        const Outcome rows(world, logits, {7, 7});
        EXPECT_TRUE(std::isnan(rows.losses[0])) << at;
        EXPECT_TRUE(std::isnan(rows.logits[7])) << at;
        EXPECT_NEAR(rows.losses[1], std::log(2049.0), 1e-5);
      }
    }
  }
}

TEST(CrossEntropy, IgnoredRowsGiveZero) {
  for (const Backend backend : {Backend::reference, Backend::cpu}) {
    World world(1, backend);
    const Outcome rows(world, std::vector<float>(3 * 19, 2.0f), {-1, 4, -1});
    EXPECT_EQ(rows.losses[0], 0);
    EXPECT_EQ(rows.losses[2], 0);
    EXPECT_NEAR(rows.losses[1], std::log(19.0), 1e-6);
    for (size_t i = 0; i < 19; ++i) {
      EXPECT_EQ(rows.logits[i], 0);
      EXPECT_EQ(rows.logits[38 + i], 0);
    }
  }
}

}  // namespace
}  // namespace fivefold::kernels
