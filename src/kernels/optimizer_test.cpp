#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "kernels/ops.hpp"
#include "tensor/tensor.hpp"

namespace fivefold::kernels {
namespace {

std::vector<Isa> isas_here() {
  std::vector<Isa> isas = {Isa::portable};
  if (best_isa() != Isa::portable) isas.push_back(Isa::avx2);
  if (best_isa() == Isa::avx512) isas.push_back(Isa::avx512);
  return isas;
}

struct State {
  Tensor w, g, m, v, low;
};

template <class T>
State make_state(Memory& memory, int64_t count) {
  const auto make = [&](const char* name, double scale, bool positive) {
    Tensor t(memory, Category::optimizer, DTypeOf<T>::value, {count});
    const Random random(5, stream_of(name));
    for (int64_t i = 0; i < count; ++i) {
      const double x = scale * random.normal(uint64_t(i));
      t.flat<T>()[size_t(i)] = T(positive ? x * x : x);
    }
    return t;
  };
  return {make("w", 1, false), make("g", 0.1, false), make("m", 0.1, false), make("v", 0.1, true),
          Tensor(memory, Category::parameter, DType::bf16, {count})};
}

constexpr AdamW settings{.lr = 1e-2,
                         .beta1 = 0.9,
                         .beta2 = 0.95,
                         .eps = 1e-6,
                         .weight_decay = 0.1,
                         .step = 3,
                         .grad_scale = 0.5};

// The formula of ops.hpp, written out once more for one element in long double.
TEST(AdamW, TheReferenceIsTheFormula) {
  Memory memory;
  ThreadPool pool(1);
  Context ctx{pool, memory, Backend::reference};
  State s = make_state<double>(memory, 20);
  const State before = make_state<double>(memory, 20);
  adamw(ctx, settings, s.w, s.g, s.m, s.v, s.low);
  for (size_t i = 0; i < 20; ++i) {
    const long double g = 0.5L * before.g.flat<double>()[i];
    const long double m = 0.9L * before.m.flat<double>()[i] + 0.1L * g;
    const long double v = 0.95L * before.v.flat<double>()[i] + 0.05L * g * g;
    const long double w = before.w.flat<double>()[i];
    const long double next = w - 0.01L * (m / (1 - 0.9L * 0.9L * 0.9L) /
                                              (std::sqrt(v / (1 - 0.95L * 0.95L * 0.95L)) + 1e-6L) +
                                          0.1L * w);
    EXPECT_NEAR(s.w.flat<double>()[i], double(next), 1e-15);
    EXPECT_NEAR(s.m.flat<double>()[i], double(m), 1e-16);
    EXPECT_NEAR(s.v.flat<double>()[i], double(v), 1e-16);
    EXPECT_EQ(s.low.flat<bf16>()[i], to_bf16(float(s.w.flat<double>()[i])));
  }
}

double relative(std::span<const float> a, std::span<const float> b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
    norm += double(b[i]) * b[i];
  }
  return std::sqrt(difference / norm);
}

TEST(AdamW, FastAgreesWithReferenceAndThreadsAgreeBitForBit) {
  Memory memory;
  for (const int64_t count : {1, 7, 16, 33, 100'003}) {
    ThreadPool single(1);
    Context reference{single, memory, Backend::reference};
    State expected = make_state<float>(memory, count);
    adamw(reference, settings, expected.w, expected.g, expected.m, expected.v, expected.low);
    for (const Isa isa : isas_here()) {
      State first;
      for (const int threads : {1, 2, 3}) {
        SCOPED_TRACE(fmt::format("{} {} {}", count, name_of(isa), threads));
        ThreadPool pool(threads);
        Context ctx{pool, memory, Backend::cpu, isa};
        State s = make_state<float>(memory, count);
        adamw(ctx, settings, s.w, s.g, s.m, s.v, s.low);
        EXPECT_LE(relative(s.w.flat<float>(), expected.w.flat<float>()), 2e-7);
        EXPECT_LE(relative(s.m.flat<float>(), expected.m.flat<float>()), 2e-7);
        EXPECT_LE(relative(s.v.flat<float>(), expected.v.flat<float>()), 2e-7);
        for (size_t i = 0; i < size_t(count); ++i) {
          ASSERT_EQ(s.low.flat<bf16>()[i], to_bf16(s.w.flat<float>()[i]));
        }
        if (threads == 1) {
          first = std::move(s);
          continue;
        }
        for (size_t i = 0; i < size_t(count); ++i) {
          ASSERT_EQ(s.w.flat<float>()[i], first.w.flat<float>()[i]) << i;
        }
      }
    }
  }
}

TEST(AdamW, WithoutLowAndWithZeroGradientOnlyDecays) {
  Memory memory;
  ThreadPool pool(2);
  for (const Backend backend : {Backend::reference, Backend::cpu}) {
    Context ctx{pool, memory, backend};
    State s = make_state<float>(memory, 40);
    const State before = make_state<float>(memory, 40);
    s.g.zero(), s.m.zero(), s.v.zero();
    adamw(ctx, settings, s.w, s.g, s.m, s.v, {});
    for (size_t i = 0; i < 40; ++i) {
      const float w = before.w.flat<float>()[i];
      EXPECT_NEAR(s.w.flat<float>()[i], w - 0.001f * w, 2e-7);
    }
  }
}

TEST(SumOfSquares, IsExactAndTheSameAtAnyNumberOfThreads) {
  Memory memory;
  for (const int64_t count : {0, 1, 15, 77, 65'536, 65'537, 300'001}) {
    Tensor x(memory, Category::gradient, DType::f32, {count});
    const Random random(9, 1);
    long double exact = 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto value = float(random.normal(uint64_t(i)));
      x.flat<float>()[size_t(i)] = value;
      exact += (long double)(value)*value;
    }
    for (const Isa isa : isas_here()) {
      double first = 0;
      for (const int threads : {1, 2, 3}) {
        ThreadPool pool(threads);
        Context ctx{pool, memory, Backend::cpu, isa};
        const double sum = sum_of_squares(ctx, x);
        EXPECT_NEAR(sum, double(exact), 1e-14 * double(exact));
        if (threads == 1) first = sum;
        EXPECT_EQ(sum, first) << count << name_of(isa) << threads;
      }
    }
  }
}

TEST(SumOfSquares, TakesAllDTypesAndHugeValues) {
  Memory memory;
  ThreadPool pool(2);
  for (const Backend backend : {Backend::reference, Backend::cpu}) {
    Context ctx{pool, memory, backend};
    Tensor half(memory, Category::gradient, DType::bf16, {21});
    for (bf16& x : half.flat<bf16>()) x = to_bf16(1e20f);  // the square overflows float32
    const double value = to_float(to_bf16(1e20f));
    EXPECT_NEAR(sum_of_squares(ctx, half) / (21 * value * value), 1, 1e-15);
    Tensor wide(memory, Category::gradient, DType::f64, {21});
    for (double& x : wide.flat<double>()) x = 3;
    EXPECT_EQ(sum_of_squares(ctx, wide), 189);
  }
}

TEST(SumOfSquares, NeverSwallowsNaNOrInf) {
  Memory memory;
  ThreadPool pool(2);
  for (const Isa isa : isas_here()) {
    Context ctx{pool, memory, Backend::cpu, isa};
    for (const int64_t count : {1, 5, 40, 20'000}) {
      for (const int64_t at : {int64_t{0}, count / 2, count - 1}) {
        Tensor x(memory, Category::gradient, DType::f32, {count});
        std::fill(x.flat<float>().begin(), x.flat<float>().end(), 1.0f);
        x.flat<float>()[size_t(at)] = -std::numeric_limits<float>::infinity();
        EXPECT_TRUE(std::isinf(sum_of_squares(ctx, x)));
        x.flat<float>()[size_t(at)] = std::numeric_limits<float>::quiet_NaN();
        EXPECT_TRUE(std::isnan(sum_of_squares(ctx, x)));
      }
    }
  }
}

}  // namespace
}  // namespace fivefold::kernels
