// The fast matrix products against the reference ones: every instruction set that this machine
// has, both engines, all dtypes; then what only threads can break.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "base/random.hpp"
#include "kernels/matmul.hpp"
#include "tensor/tensor.hpp"

namespace fivefold::kernels {
namespace {

struct Sizes {
  int64_t rows, in, out;
  int64_t slack = 0;  // elements between the rows of x, y, dx and dy
};

// Around the micro-tiles (6x16, 8x48, 4x8), the blocks of K (384) and of lanes, and powers of two.
constexpr Sizes sizes[] = {{1, 1, 1},        {1, 7, 33},       {7, 33, 1},        {2, 64, 64},
                           {3, 0, 5},        {5, 1, 49},       {8, 48, 48},       {9, 385, 50},
                           {33, 17, 129},    {64, 64, 64, 3},  {31, 768, 97},     {128, 128, 128},
                           {17, 1024, 70},   {200, 33, 300},   {300, 31, 100, 5}, {6, 3500, 40},
                           {50, 13, 400, 1}, {16, 16, 16, 16}, {4, 200, 1000},    {12, 300, 500}};

std::string label(const Sizes& s) {
  return std::to_string(s.rows) + "x" + std::to_string(s.in) + "x" + std::to_string(s.out);
}

void fill(const View& view, uint64_t seed) {
  const Random random(seed, 7);
  const auto put = [&]<class T>(T* data) {
    for (int64_t i = 0; i < view.count(); ++i) {
      store(data[i], Accumulator<T>(random.uniform(uint64_t(i)) - 0.5));
    }
  };
  if (view.dtype == DType::f32) put(view.as<float>());
  if (view.dtype == DType::f64) put(view.as<double>());
  if (view.dtype == DType::bf16) put(view.as<bf16>());
}

double at(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::f32) return tensor.flat<float>()[size_t(i)];
  if (tensor.dtype() == DType::f64) return tensor.flat<double>()[size_t(i)];
  return to_float(tensor.flat<bf16>()[size_t(i)]);
}

// All operands and results of the three products, each in a tensor with slack columns that must
// stay as they were.
struct Operands {
  Operands(Memory& memory, DType dtype, const Sizes& s) : s_(s) {
    const DType sum = accumulator_of(dtype);
    const auto make = [&](DType type, int64_t rows, int64_t columns, uint64_t seed) {
      Tensor tensor(memory, Category::workspace, type, {rows, columns});
      fill(tensor, seed);
      return tensor;
    };
    x = make(dtype, s.rows, s.in + s.slack, 1);
    w = make(dtype, s.out, s.in, 2);
    bias = make(dtype, 1, s.out, 3);
    y = make(dtype, s.rows, s.out + s.slack, 4);
    dy = make(dtype, s.rows, s.out + s.slack, 5);
    dx = make(dtype, s.rows, s.in + s.slack, 6);
    dw = make(sum, s.out, s.in, 7);
    dbias = make(sum, 1, s.out, 8);
  }
  View columns(const Tensor& t, int64_t count) const { return t.view().slice(1, 0, count); }

  void compute(Context& ctx, Write write, bool with_bias) {
    const ConstView b = with_bias ? ConstView(bias) : ConstView();
    linear_forward(ctx, columns(x, s_.in), w, b, columns(y, s_.out), write);
    linear_backward_input(ctx, columns(dy, s_.out), w, columns(dx, s_.in), write);
    linear_backward_weight(ctx, columns(dy, s_.out), columns(x, s_.in), dw,
                           with_bias ? View(dbias) : View());
  }
  std::vector<const Tensor*> results() const { return {&y, &dx, &dw, &dbias}; }

  Sizes s_;
  Tensor x, w, bias, y, dy, dx, dw, dbias;
};

// |difference| <= tolerance * (1 + |expected|), elements in the slack included.
void expect_near(const Operands& actual, const Operands& expected, double tolerance,
                 const std::string& what) {
  const char* names[] = {"y", "dx", "dw", "dbias"};
  for (size_t r = 0; r < 4; ++r) {
    const Tensor &a = *actual.results()[r], &e = *expected.results()[r];
    for (int64_t i = 0; i < e.count(); ++i) {
      ASSERT_LE(std::abs(at(a, i) - at(e, i)), tolerance * (1 + std::abs(at(e, i))))
          << what << ": " << names[r] << "[" << i << "] is " << at(a, i) << ", not " << at(e, i);
    }
  }
}

bool same_bits(const Operands& a, const Operands& b) {
  for (size_t r = 0; r < 4; ++r) {
    const Tensor &x = *a.results()[r], &y = *b.results()[r];
    if (std::memcmp(x.view().data, y.view().data, x.bytes()) != 0) return false;
  }
  return true;
}

// Sums of up to 3500 products of random numbers below 1/2: rounding errors in float32 add up to
// some sqrt(3500) * 2^-24 of sums below 10; bf16 results are rounded to 2^-9 once, by both.
double tolerance_of(DType dtype) {
  if (dtype == DType::f64) return 1e-13;
  return dtype == DType::f32 ? 1e-5 : 8e-3;
}

std::vector<Isa> isas() {
  std::vector<Isa> all = {Isa::portable};
  if (best_isa() >= Isa::avx2) all.push_back(Isa::avx2);
  if (best_isa() >= Isa::avx512) all.push_back(Isa::avx512);
  return all;
}

class Linear : public testing::TestWithParam<DType> {};

TEST_P(Linear, AgreesWithTheReference) {
  Memory memory;
  ThreadPool pool(2);
  for (const Sizes& s : sizes) {
    for (const Write write : {Write::overwrite, Write::accumulate}) {
      const bool with_bias = write == Write::overwrite || s.slack > 0;
      Operands expected(memory, GetParam(), s);
      Context reference{.pool = pool, .memory = memory, .backend = Backend::reference};
      expected.compute(reference, write, with_bias);
      for (const Isa isa : isas()) {
        for (const MatmulEngine engine : {MatmulEngine::packed, MatmulEngine::openblas}) {
          // OpenBLAS chooses its own instruction set: once is enough.
          if (engine == MatmulEngine::openblas && isa != Isa::portable) continue;
          Operands actual(memory, GetParam(), s);
          Context ctx{.pool = pool, .memory = memory, .isa = isa, .matmul = engine};
          actual.compute(ctx, write, with_bias);
          expect_near(actual, expected, tolerance_of(GetParam()),
                      label(s) + " " + std::string(name_of(isa)) +
                          (engine == MatmulEngine::packed ? " packed" : " openblas"));
        }
      }
    }
  }
}

TEST_P(Linear, BitsDoNotDependOnThreads) {
  Memory memory;
  for (const Sizes& s : {Sizes{100, 800, 150}, Sizes{64, 3300, 70}, Sizes{260, 90, 700, 4},
                         Sizes{1, 500, 900}, Sizes{600, 65, 50}}) {
    for (const Isa isa : isas()) {
      std::unique_ptr<Operands> one;
      for (const int threads : {1, 2, 3, 8}) {
        ThreadPool pool(threads);
        Context ctx{.pool = pool, .memory = memory, .isa = isa, .matmul = MatmulEngine::packed};
        auto result = std::make_unique<Operands>(memory, GetParam(), s);
        result->compute(ctx, Write::overwrite, true);
        if (!one)
          one = std::move(result);
        else
          EXPECT_TRUE(same_bits(*one, *result))
              << label(s) << " " << name_of(isa) << ", " << threads << " threads";
      }
    }
  }
}

TEST_P(Linear, ConcurrentRanksDoNotDisturbEachOther) {
  constexpr Sizes s{70, 400, 130};
  for (const MatmulEngine engine : {MatmulEngine::packed, MatmulEngine::openblas}) {
    Memory memory;
    ThreadPool pool(2);
    Context alone{.pool = pool, .memory = memory, .matmul = engine};
    Operands expected(memory, GetParam(), s);
    expected.compute(alone, Write::overwrite, true);
    std::vector<int> wrong(4, 0);
    std::vector<std::thread> ranks;
    for (size_t rank = 0; rank < wrong.size(); ++rank) {
      ranks.emplace_back([&, rank] {
        Memory own;
        ThreadPool threads(2);
        Context ctx{.pool = threads, .memory = own, .matmul = engine};
        for (int i = 0; i < 6; ++i) {
          Operands result(own, GetParam(), s);
          result.compute(ctx, Write::overwrite, true);
          wrong[rank] += !same_bits(result, expected);
        }
      });
    }
    for (std::thread& rank : ranks) rank.join();
    EXPECT_EQ(wrong, std::vector<int>(4, 0));
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, Linear, testing::Values(DType::f32, DType::f64, DType::bf16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

// A NaN in one row of x must reach that row of y and no other.
TEST(LinearForward, NotANumberStaysInItsRow) {
  Memory memory;
  ThreadPool pool(1);
  for (const Isa isa : isas()) {
    for (const int64_t rows : {3, 20}) {
      Operands o(memory, DType::f32, {rows, 40, 50});
      o.x.flat<float>()[40 + 3] = std::nanf("");
      Context ctx{.pool = pool, .memory = memory, .isa = isa, .matmul = MatmulEngine::packed};
      linear_forward(ctx, o.x, o.w, {}, o.y);
      for (int64_t i = 0; i < o.y.count(); ++i) {
        EXPECT_EQ(std::isnan(o.y.flat<float>()[size_t(i)]), i / 50 == 1) << name_of(isa) << i;
      }
    }
  }
}

TEST(LinearDeathTest, NamesTheWrongShape) {
  Memory memory;
  ThreadPool pool(1);
  Context ctx{.pool = pool, .memory = memory};
  Operands o(memory, DType::f32, {3, 4, 5});
  EXPECT_DEATH(linear_forward(ctx, o.x, o.x, {}, o.y),
               "linear_forward: w is \\[3, 4\\], not \\[5, 4\\]");
  EXPECT_DEATH(linear_forward(ctx, o.x, o.w, o.x.view().slice(0, 0, 1), o.y), "bias");
}

}  // namespace
}  // namespace fivefold::kernels
