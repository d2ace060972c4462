#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "kernels/ops.hpp"
#include "tensor/tensor.hpp"

namespace fivefold::kernels {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::vector<Context> contexts_here(ThreadPool& pool, Memory& memory) {
  std::vector<Context> all;
  all.push_back({pool, memory, Backend::reference});
  all.push_back({pool, memory, Backend::cpu, Isa::portable});
  if (best_isa() != Isa::portable) all.push_back({pool, memory, Backend::cpu, Isa::avx2});
  if (best_isa() == Isa::avx512) all.push_back({pool, memory, Backend::cpu, Isa::avx512});
  return all;
}

Tensor filled(Memory& memory, DType dtype, const Shape& shape, double value) {
  Tensor t(memory, Category::activation, dtype, shape);
  for (int64_t i = 0; i < t.count(); ++i) {
    if (dtype == DType::f32) t.flat<float>()[size_t(i)] = float(value);
    if (dtype == DType::f64) t.flat<double>()[size_t(i)] = value;
    if (dtype == DType::bf16) t.flat<bf16>()[size_t(i)] = to_bf16(float(value));
  }
  return t;
}

double at(const Tensor& t, int64_t i) {
  if (t.dtype() == DType::f32) return double(t.flat<float>()[size_t(i)]);
  if (t.dtype() == DType::f64) return t.flat<double>()[size_t(i)];
  return double(to_float(t.flat<bf16>()[size_t(i)]));
}

TEST(Convert, GoesBetweenAllDTypesAndAdds) {
  Memory memory;
  ThreadPool pool(2);
  const DType dtypes[] = {DType::f32, DType::f64, DType::bf16};
  for (Context& ctx : contexts_here(pool, memory)) {
    for (const DType from : dtypes) {
      for (const DType to : dtypes) {
        SCOPED_TRACE(fmt::format("{} to {} on {}", name_of(from), name_of(to), name_of(ctx.isa)));
        const Tensor x = filled(memory, from, {3, 13}, 1 + 0x1p-8 + 0x1p-9);
        Tensor y = filled(memory, to, {3, 13}, 2);
        const double sent = at(x, 0);
        const double stored = to == DType::bf16 ? to_float(to_bf16(float(sent))) : sent;
        convert(ctx, x, y, Write::accumulate);
        const double sum = to == DType::bf16 ? to_float(to_bf16(float(2 + sent))) : 2 + sent;
        for (int64_t i = 0; i < y.count(); ++i) EXPECT_EQ(at(y, i), sum);
        convert(ctx, x, y);
        for (int64_t i = 0; i < y.count(); ++i) EXPECT_EQ(at(y, i), stored);
      }
    }
  }
}

// Large outputs are streamed past the caches; they start and end anywhere.
TEST(Convert, StreamsLargeOutputs) {
  Memory memory;
  ThreadPool pool(2);
  const int64_t count = (int64_t{10} << 20) + 3;
  Tensor x = filled(memory, DType::f32, {count}, 0), y = filled(memory, DType::f32, {count}, -1);
  Tensor low = filled(memory, DType::bf16, {count}, -1);
  for (int64_t i = 0; i < count; ++i) x.flat<float>()[size_t(i)] = float(i % 251);
  for (Context& ctx : contexts_here(pool, memory)) {
    for (const int64_t from : {0, 5}) {
      convert(ctx, x.view().slice(0, from, count - 1), y.view().slice(0, from, count - 1));
      convert(ctx, x.view().slice(0, from, count - 1), low.view().slice(0, from, count - 1));
      for (int64_t i = from; i < count - 1; ++i) {
        ASSERT_EQ(y.flat<float>()[size_t(i)], float(i % 251)) << i;
        ASSERT_EQ(to_float(low.flat<bf16>()[size_t(i)]), float(i % 251)) << i;
      }
      EXPECT_EQ(y.flat<float>()[size_t(count - 1)], -1);
      EXPECT_EQ(to_float(low.flat<bf16>()[size_t(count - 1)]), -1);
      std::fill(y.flat<float>().begin(), y.flat<float>().end(), -1.0f);
    }
  }
}

TEST(Convert, WalksStridedRows) {
  Memory memory;
  ThreadPool pool(2);
  for (Context& ctx : contexts_here(pool, memory)) {
    Tensor x = filled(memory, DType::f32, {2, 3, 4, 5}, 0),
           y = filled(memory, DType::bf16, {3, 5}, 0);
    for (int64_t i = 0; i < x.count(); ++i) x.flat<float>()[size_t(i)] = float(i);
    convert(ctx, x.view().slice(0, 1, 2).slice(2, 2, 3), y.view().reshape({1, 3, 1, 5}));
    for (int64_t n = 0; n < 3; ++n) {
      for (int64_t c = 0; c < 5; ++c) EXPECT_EQ(at(y, n * 5 + c), 60 + n * 20 + 10 + c);
    }
  }
}

std::vector<int64_t> token_range(int64_t from, int64_t count) {
  std::vector<int64_t> tokens;
  for (int64_t n = 0; n < count; ++n) tokens.push_back(from + n);
  return tokens;
}

ConstView view_of(const std::vector<int64_t>& tokens) {
  return {tokens.data(), DType::i64, {int64_t(tokens.size())}};
}

TEST(Dropout, MaskIsAFunctionOfTokenAndColumnAlone) {
  Memory memory;
  ThreadPool pool(3);
  const Random random(11, 12);
  const auto tokens = token_range(1'000'000'000'000, 40);
  Tensor whole = filled(memory, DType::f32, {40, 301}, 1);
  Context reference{pool, memory, Backend::reference};
  dropout(reference, whole, 0.25, random, view_of(tokens));
  for (Context& ctx : contexts_here(pool, memory)) {
    // Another piece of the stream, fewer columns, other neighbours: the same mask.
    const auto some = token_range(1'000'000'000'017, 9);
    Tensor part = filled(memory, DType::f32, {9, 77}, 1);
    dropout(ctx, part, 0.25, random, view_of(some));
    for (int64_t n = 0; n < 9; ++n) {
      for (int64_t c = 0; c < 77; ++c) {
        ASSERT_EQ(at(part, n * 77 + c), at(whole, (n + 17) * 301 + c)) << n << " " << c;
      }
    }
  }
}

TEST(Dropout, DropsTheRateAndKeepsTheMean) {
  Memory memory;
  ThreadPool pool(2);
  const auto tokens = token_range(0, 400);
  for (Context& ctx : contexts_here(pool, memory)) {
    Tensor x = filled(memory, DType::f32, {400, 256}, 2);
    dropout(ctx, x, 0.1, Random(1, 2), view_of(tokens));
    int64_t dropped = 0;
    for (const float v : x.flat<float>()) {
      if (v == 0)
        ++dropped;
      else
        ASSERT_FLOAT_EQ(v, 2 / 0.9f);
    }
    const double n = double(x.count());
    EXPECT_NEAR(double(dropped) / n, 0.1, 5 * std::sqrt(0.1 * 0.9 / n));
    Tensor same = filled(memory, DType::f32, {400, 256}, 2);
    dropout(ctx, same, 0, Random(1, 2), view_of(tokens));
    for (const float v : same.flat<float>()) ASSERT_EQ(v, 2);
    Tensor other = filled(memory, DType::f32, {400, 256}, 2);
    dropout(ctx, other, 0.1, Random(1, 3), view_of(tokens));
    int64_t equal = 0;
    for (int64_t i = 0; i < x.count(); ++i) equal += at(x, i) == at(other, i) ? 1 : 0;
    EXPECT_NEAR(double(equal) / n, 0.82, 5 * std::sqrt(0.82 * 0.18 / n));
  }
}

// ---- NaN comes out wherever it goes in.

struct Poisoned {
  Tensor x, other, w, y, z, mean, rstd;
};

// Runs `op` with one NaN at `position` of x; true if `row_only` columns of y's row, or the element,
// are NaN and nothing else is.
using Op = std::function<void(Context&, Poisoned&)>;

void expect_nan(const char* name, bool whole_row, const Op& op) {
  Memory memory;
  ThreadPool pool(2);
  constexpr int64_t rows = 2, columns = 37;
  for (Context& ctx : contexts_here(pool, memory)) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
      for (const int64_t column : {int64_t{0}, int64_t{7}, int64_t{20}, columns - 1}) {
        SCOPED_TRACE(fmt::format("{} {} {} {}", name, name_of(ctx.isa), name_of(dtype), column));
        const Shape shape = {rows, columns};
        const DType a = accumulator_of(dtype);
        Poisoned p{filled(memory, dtype, shape, 0.5),   filled(memory, dtype, shape, 0.25),
                   filled(memory, dtype, {columns}, 1), filled(memory, dtype, shape, 0),
                   filled(memory, dtype, shape, 0),     filled(memory, a, {rows}, 0),
                   filled(memory, a, {rows}, 1)};
        const int64_t poison = columns + column;  // in row 1
        if (dtype == DType::f32) p.x.flat<float>()[size_t(poison)] = nan;
        if (dtype == DType::f64) p.x.flat<double>()[size_t(poison)] = nan;
        if (dtype == DType::bf16) p.x.flat<bf16>()[size_t(poison)] = to_bf16(nan);
        op(ctx, p);
        for (int64_t i = 0; i < rows * columns; ++i) {
          const bool expected = whole_row ? i >= columns : i == poison;
          ASSERT_EQ(std::isnan(at(p.y, i)), expected) << i;
        }
      }
    }
  }
}

TEST(NaN, ComesThroughEveryOp) {
  const auto tokens = token_range(0, 2);
  expect_nan("gelu", false, [](Context& ctx, Poisoned& p) { gelu_forward(ctx, p.x, p.y); });
  expect_nan("dgelu", false,
             [](Context& ctx, Poisoned& p) { gelu_backward(ctx, p.other, p.x, p.y); });
  expect_nan("dgelu dy", false,
             [](Context& ctx, Poisoned& p) { gelu_backward(ctx, p.x, p.other, p.y); });
  expect_nan("swiglu gate", false,
             [](Context& ctx, Poisoned& p) { swiglu_forward(ctx, p.x, p.other, p.y); });
  expect_nan("swiglu up", false,
             [](Context& ctx, Poisoned& p) { swiglu_forward(ctx, p.other, p.x, p.y); });
  expect_nan("dgate", false, [](Context& ctx, Poisoned& p) {
    swiglu_backward(ctx, p.other, p.x, p.other, p.y, p.z);
  });
  expect_nan("dup", false, [](Context& ctx, Poisoned& p) {
    swiglu_backward(ctx, p.other, p.x, p.other, p.z, p.y);
  });
  expect_nan("convert", false, [](Context& ctx, Poisoned& p) { convert(ctx, p.x, p.y); });
  expect_nan("dropout", false, [&](Context& ctx, Poisoned& p) {
    convert(ctx, p.x, p.y);
    dropout(ctx, p.y, 0.9, Random(1, 1), view_of(tokens));  // most of it is dropped
  });
  expect_nan("rmsnorm", true,
             [](Context& ctx, Poisoned& p) { rmsnorm_forward(ctx, p.x, p.w, 1e-5, p.y, p.rstd); });
  expect_nan("layernorm", true, [](Context& ctx, Poisoned& p) {
    layernorm_forward(ctx, p.x, p.w, p.w, 1e-5, p.y, p.mean, p.rstd);
  });
  expect_nan("drmsnorm", true, [](Context& ctx, Poisoned& p) {
    rmsnorm_backward_input(ctx, p.x, p.other, p.w, p.rstd, p.y);
  });
  expect_nan("dlayernorm", true, [](Context& ctx, Poisoned& p) {
    layernorm_backward_input(ctx, p.x, p.other, p.w, p.mean, p.rstd, p.y);
  });
}

TEST(NaN, ComesThroughAdamW) {
  Memory memory;
  ThreadPool pool(1);
  for (Context& ctx : contexts_here(pool, memory)) {
    for (const int64_t poison : {0, 9, 20}) {
      Tensor w = filled(memory, DType::f32, {21}, 1), g = filled(memory, DType::f32, {21}, 1);
      Tensor m = filled(memory, DType::f32, {21}, 0), v = filled(memory, DType::f32, {21}, 0);
      Tensor low = filled(memory, DType::bf16, {21}, 0);
      g.flat<float>()[size_t(poison)] = nan;
      adamw(ctx, {.lr = 0.1}, w, g, m, v, low);
      for (int64_t i = 0; i < 21; ++i) {
        for (const Tensor* t : {&w, &m, &v, &low}) EXPECT_EQ(std::isnan(at(*t, i)), i == poison);
      }
    }
  }
}

// An id outside the table is our own mistake and ends the program.
TEST(EmbeddingDeathTest, RefusesAnIdOutsideTheTable) {
  Memory memory;
  ThreadPool pool(1);
  Context ctx{pool, memory};
  const int32_t ids[] = {0, 3};
  const Tensor table = filled(memory, DType::f32, {3, 4}, 1);
  Tensor y = filled(memory, DType::f32, {2, 4}, 0);
  EXPECT_DEATH(embedding_forward(ctx, ConstView(ids, DType::i32, {2}), table, y),
               "ids\\[1\\] = 3 with a vocabulary of 3");
}

}  // namespace
}  // namespace fivefold::kernels
