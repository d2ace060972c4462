#include "optim/optimizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/random.hpp"
#include "kernels/thread_pool.hpp"

namespace fivefold::optim {
namespace {

spec::ParameterSpec matrix(const char* name, int64_t rows, int64_t columns) {
  spec::ParameterSpec spec;
  spec.name = name;
  spec.shape = {rows, columns};
  spec.weight_decay = true;
  return spec;
}

spec::ParameterSpec vector(const char* name, int64_t size) {
  spec::ParameterSpec spec;
  spec.name = name;
  spec.shape = {size};
  return spec;
}

std::vector<spec::ParameterSpec> some_parameters() {
  return {matrix("embedding", 33, 8), matrix("q", 8, 8), matrix("k", 8, 8),
          vector("norm", 8),          vector("bias", 5), matrix("head", 8, 33)};
}

struct Fixture {
  Memory memory;
  kernels::ThreadPool pool{2};
  kernels::Context ctx{pool, memory};
  ParameterSet set;

  explicit Fixture(DType dtype) : set(memory, some_parameters(), dtype, true) {
    for (int64_t i = 0; i < set.count(); ++i) put(set.values(), i, value_of(i));
  }
  static double value_of(int64_t i) { return Random(1, 2).normal(uint64_t(i)) * 0.1; }
  static double gradient_of(int64_t i, int64_t step) {
    return Random(3, uint64_t(step)).normal(uint64_t(i)) * (i % 7 == 0 ? 100 : 0.01);
  }
  static void put(View v, int64_t i, double x) {
    if (v.dtype == DType::f64) v.as<double>()[i] = x;
    if (v.dtype == DType::f32) v.as<float>()[i] = float(x);
    if (v.dtype == DType::bf16) v.as<bf16>()[i] = to_bf16(float(x));
  }
  static double get(View v, int64_t i) {
    if (v.dtype == DType::f64) return v.as<double>()[i];
    if (v.dtype == DType::f32) return v.as<float>()[i];
    return to_float(v.as<bf16>()[i]);
  }
  void gradients(int64_t step) {
    for (int64_t i = 0; i < set.count(); ++i) put(set.gradients(), i, gradient_of(i, step));
  }
};

// Textbook AdamW, one number at a time, in double.
struct Scalar {
  double w = 0, m = 0, v = 0;
  void step(const spec::OptimizerSpec& s, double lr, int64_t t, double g, bool decays) {
    m = s.beta1 * m + (1 - s.beta1) * g;
    v = s.beta2 * v + (1 - s.beta2) * g * g;
    const double mean = m / (1 - std::pow(s.beta1, double(t)));
    const double square = v / (1 - std::pow(s.beta2, double(t)));
    w -= lr * (mean / (std::sqrt(square) + s.eps) + (decays ? s.weight_decay * w : 0));
  }
};

// After 200 steps with clipping-like scales; returns the largest error of a weight.
double worst_after_many_steps(DType dtype) {
  Fixture f(dtype);
  const spec::OptimizerSpec spec{.weight_decay = 0.3};
  AdamWOptimizer optimizer(f.ctx, f.set, spec);
  std::vector<Scalar> scalars(static_cast<size_t>(f.set.count()));
  for (int64_t i = 0; i < f.set.count(); ++i) scalars[size_t(i)].w = f.get(f.set.values(), i);
  for (int64_t step = 1; step <= 200; ++step) {
    f.gradients(step);
    const double lr = 1e-3 * (step <= 20 ? double(step) / 20 : 1), scale = step % 3 == 0 ? 0.25 : 1;
    for (const Parameter& p : f.set.all()) {
      for (int64_t i = p.offset; i < p.offset + p.count; ++i) {
        scalars[size_t(i)].step(spec, lr, step, f.get(f.set.gradients(), i) * scale,
                                p.spec.weight_decay);
      }
    }
    optimizer.step(f.ctx, lr, step, scale);
  }
  double worst = 0;
  for (int64_t i = 0; i < f.set.count(); ++i) {
    worst = std::max(worst, std::abs(f.get(optimizer.weights(), i) - scalars[size_t(i)].w));
    if (dtype == DType::bf16) {
      EXPECT_EQ(f.set.values().as<bf16>()[i], to_bf16(optimizer.master().as<float>()[i])) << i;
    }
  }
  return worst;
}

// Weights move by up to lr a step, so 200 float32 roundings of numbers below 0.6 stay under 200 *
// 2^-25 plus the relative error of each update, 200 * 1e-3 * a few 2^-24.
TEST(AdamWOptimizer, FollowsTheScalarOneInFloat32) {
  EXPECT_LT(worst_after_many_steps(DType::f32), 7e-6);
}
TEST(AdamWOptimizer, FollowsTheScalarOneInFloat64) {
  EXPECT_LT(worst_after_many_steps(DType::f64), 1e-14);
}
TEST(AdamWOptimizer, KeepsFloat32MastersOfBf16) {
  EXPECT_LT(worst_after_many_steps(DType::bf16), 7e-6);
}

// With a zero gradient only decay moves a weight: by the factor 1 - lr * weight_decay.
TEST(AdamWOptimizer, DecaysMatricesOnly) {
  Fixture f(DType::f64);
  AdamWOptimizer optimizer(f.ctx, f.set, {.weight_decay = 0.5});
  f.set.zero_gradients();
  optimizer.step(f.ctx, 0.1, 1);
  for (const Parameter& p : f.set.all()) {
    for (int64_t i = p.offset; i < p.offset + p.count; ++i) {
      const double factor = p.spec.shape.size() == 2 ? 0.95 : 1;
      EXPECT_DOUBLE_EQ(f.set.values().as<double>()[i], Fixture::value_of(i) * factor)
          << p.spec.name;
    }
  }
}

// Updates too small for bf16 add up in the masters and reach the values in the end.
TEST(AdamWOptimizer, SmallUpdatesOfBf16AreNotLost) {
  Fixture f(DType::bf16);
  for (bf16& x : f.set.values().flat<bf16>()) x = to_bf16(1);
  AdamWOptimizer optimizer(f.ctx, f.set, {.weight_decay = 0});
  for (float& g : f.set.gradients().flat<float>()) g = 1;
  for (int64_t step = 1; step <= 100; ++step) optimizer.step(f.ctx, 1e-4, step);
  // Constant gradients make every update lr: 1 - 100 * 1e-4 = 0.99.
  EXPECT_NEAR(optimizer.master().as<float>()[0], 0.99, 1e-5);
  EXPECT_EQ(f.set.values().as<bf16>()[0], to_bf16(0.99f));
}

TEST(AdamWOptimizer, StateTakesTheBytesItShouldAndNoMore) {
  for (const auto& [dtype, bytes] :
       {std::pair{DType::f32, 8}, {DType::bf16, 12}, {DType::f64, 16}}) {
    Fixture f(dtype);
    const AdamWOptimizer optimizer(f.ctx, f.set, {});
    EXPECT_EQ(f.memory.live().of(Category::optimizer), bytes * f.set.count()) << name_of(dtype);
  }
}

TEST(AdamWOptimizer, StateIsNamedAfterParametersAndSharesTheMemory) {
  Fixture f(DType::bf16);
  AdamWOptimizer optimizer(f.ctx, f.set, {});
  f.gradients(1);
  optimizer.step(f.ctx, 1e-3, 1);
  const std::vector<NamedView> state = optimizer.state();
  ASSERT_EQ(state.size(), 3 * f.set.all().size());
  EXPECT_EQ(state[0].name, "embedding.m");
  EXPECT_EQ(state[1].name, "embedding.v");
  EXPECT_EQ(state[2].name, "embedding.master");
  const Parameter& head = f.set.at("head");
  const NamedView& v = state[16];
  EXPECT_EQ(v.name, "head.v");
  EXPECT_EQ(v.view.rank, 2);
  EXPECT_EQ(v.view.size[0], 8);
  EXPECT_EQ(v.view.dtype, DType::f32);
  EXPECT_EQ(v.view.as<float>()[3], optimizer.v().as<float>()[head.offset + 3]);
  EXPECT_NE(v.view.as<float>()[3], 0);
}

TEST(AdamWOptimizer, StateRestoredElsewhereContinuesToTheBit) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Fixture a(dtype), b(dtype);
    AdamWOptimizer first(a.ctx, a.set, {}), second(b.ctx, b.set, {});
    for (int64_t step = 1; step <= 3; ++step) {
      a.gradients(step);
      first.step(a.ctx, 1e-2, step);
    }
    const auto from = first.state(), to = second.state();
    for (size_t i = 0; i < from.size(); ++i) {
      std::memcpy(to[i].view.data, from[i].view.data, size_t(from[i].view.count()) * 4);
    }
    if (dtype == DType::f32) {
      std::memcpy(b.set.values().data, a.set.values().data, size_t(a.set.count()) * 4);
    }
    second.round_master(b.ctx);
    for (int64_t step = 4; step <= 6; ++step) {
      a.gradients(step);
      b.gradients(step);
      first.step(a.ctx, 1e-2, step);
      second.step(b.ctx, 1e-2, step);
    }
    EXPECT_EQ(hash_of(a.set.values()), hash_of(b.set.values())) << name_of(dtype);
  }
}

TEST(AdamWOptimizer, MastersFollowImportedValues) {
  Fixture f(DType::bf16);
  AdamWOptimizer optimizer(f.ctx, f.set, {.weight_decay = 0});
  for (bf16& x : f.set.values().flat<bf16>()) x = to_bf16(3);
  optimizer.sync_master(f.ctx);
  EXPECT_EQ(optimizer.master().as<float>()[100], 3);
  f.set.zero_gradients();
  optimizer.step(f.ctx, 1e-2, 1);
  EXPECT_EQ(to_float(f.set.values().as<bf16>()[100]), 3);
}

TEST(Clipping, NormIsThatOfAllGradientsTogether) {
  Fixture f(DType::f32);
  const AdamWOptimizer optimizer(f.ctx, f.set, {});
  f.set.zero_gradients();
  f.set.gradients().as<float>()[0] = 3;
  f.set.gradients().as<float>()[f.set.count() - 1] = -4;
  EXPECT_DOUBLE_EQ(optimizer.gradient_norm(f.ctx), 5);
}

TEST(Clipping, ScalesDownToMaxNormAndNeverUp) {
  EXPECT_EQ(clip_factor(4, 1).value(), 0.25);
  EXPECT_EQ(clip_factor(1, 1).value(), 1);
  EXPECT_EQ(clip_factor(0.5, 1).value(), 1);
  EXPECT_EQ(clip_factor(0, 1).value(), 1);
  EXPECT_EQ(clip_factor(1e6, 0).value(), 1) << "max_norm 0 is no clipping";
}

TEST(Clipping, ANormThatIsNotFiniteIsReported) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Fixture f(DType::f32);
    const AdamWOptimizer optimizer(f.ctx, f.set, {});
    f.set.zero_gradients();
    f.set.gradients().as<float>()[123] = bad;
    const double norm = optimizer.gradient_norm(f.ctx);
    EXPECT_FALSE(std::isfinite(norm));
    for (const double max_norm : {0.0, 1.0}) {
      const Result<double> factor = clip_factor(norm, max_norm);
      ASSERT_FALSE(factor);
      EXPECT_EQ(factor.error().code, Error::Code::not_finite);
    }
  }
}

}  // namespace
}  // namespace fivefold::optim
