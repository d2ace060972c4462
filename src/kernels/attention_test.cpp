#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/attention_dropout.hpp"
#include "tensor/tensor.hpp"

namespace fivefold::kernels {
namespace {

struct World {
  ThreadPool pool;
  Memory memory;
  Context ctx{.pool = pool, .memory = memory};
  explicit World(int threads = 1, Backend backend = Backend::cpu) : pool(threads) {
    ctx.backend = backend;
  }
};

// Operands of self-attention; outputs and gradients start as NaN.
struct Operands {
  Tensor q, k, v, out, lse, dout, dq, dk, dv;
  Operands(World& world, int64_t n, int64_t heads, int64_t groups, int64_t dim) {
    uint64_t stream = 0;
    const auto tensor = [&](const Shape& shape) {
      Tensor t(world.memory, Category::activation, DType::f32, shape);
      const Random random(9, stream++);
      for (int64_t i = 0; i < t.count(); ++i) {
        t.flat<float>()[size_t(i)] = float(random.normal(uint64_t(i)));
      }
      return t;
    };
    q = tensor({1, n, heads, dim}), dout = tensor({1, n, heads, dim});
    k = tensor({1, n, groups, dim}), v = tensor({1, n, groups, dim});
    out = tensor({1, n, heads, dim}), lse = tensor({1, heads, n});
    dq = tensor({1, n, heads, dim});
    dk = tensor({1, n, groups, dim}), dv = tensor({1, n, groups, dim});
    for (Tensor* t : {&out, &lse, &dq, &dk, &dv}) std::memset(t->view().data, 0xff, t->bytes());
  }
  void forward(World& world, const AttentionShape& shape = {}, ConstView documents = {},
               const std::optional<AttentionDropout>& dropout = {}) {
    attention_forward(world.ctx, shape, q, k, v, documents, dropout, out, lse);
  }
  void backward(World& world, const AttentionShape& shape = {}) {
    attention_backward(world.ctx, shape, dout, q, k, v, out, lse, {}, {}, dq, dk, dv);
  }
};

double relative_error(const Tensor& a, const Tensor& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < size_t(a.count()); ++i) {
    const double x = a.flat<float>()[i], y = b.flat<float>()[i];
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  return std::sqrt(difference / norm);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.view().data, b.view().data, a.bytes()) == 0;
}

// Long enough that the kept tiles of keys are overwritten and packed again.
TEST(Attention, MoreKeysThanThePackedTilesHold) {
  const int64_t n = 64 * 64 + 100;
  World fast(2), exact(1, Backend::reference);
  Operands got(fast, n, 1, 1, 8), expected(exact, n, 1, 1, 8);
  // The window keeps the reference quick; tiles still slide over the whole length.
  const AttentionShape shape{.window = 300, .scale = 0.3};
  got.forward(fast, shape), got.backward(fast, shape);
  expected.forward(exact, shape), expected.backward(exact, shape);
  EXPECT_LT(relative_error(got.out, expected.out), 1e-5);
  EXPECT_LT(relative_error(got.dq, expected.dq), 1e-5);
  EXPECT_LT(relative_error(got.dk, expected.dk), 1e-5);
  EXPECT_LT(relative_error(got.dv, expected.dv), 1e-5);
}

TEST(Attention, WhatScratchHeldBeforeDoesNotMatter) {
  for (const int64_t n : {3, 50, 200}) {
    World world(2);
    Operands clean(world, n, 4, 2, 20), again(world, n, 4, 2, 20);
    clean.forward(world);
    world.memory.reset_peak();
    clean.backward(world);
    const int64_t backward = world.memory.peak().of(Category::workspace);
    world.memory.reset_peak();
    clean.forward(world);
    const int64_t forward = world.memory.peak().of(Category::workspace);
    const auto poison = [&](int64_t bytes) {  // of the same size: the same block
      Tensor t(world.memory, Category::workspace, DType::f32, {bytes / 4});
      std::memset(t.view().data, 0xff, t.bytes());
    };
    poison(forward);
    again.forward(world);
    poison(backward);
    again.backward(world);
    EXPECT_TRUE(same_bits(clean.out, again.out));
    EXPECT_TRUE(same_bits(clean.dq, again.dq));
    EXPECT_TRUE(same_bits(clean.dk, again.dk));
    EXPECT_TRUE(same_bits(clean.dv, again.dv));
  }
}

TEST(Attention, AQueryThatSeesNothingGivesZero) {
  for (const int64_t n : {2, 40}) {  // decode and tiles
    for (const Backend backend : {Backend::reference, Backend::cpu}) {
      World world(1, backend);
      Operands o(world, n, 1, 1, 8);
      std::vector<int32_t> start(size_t(n), 0);
      start[1] = int32_t(n);
      o.forward(world, {}, {start.data(), DType::i32, {1, n}});
      EXPECT_EQ(o.lse.flat<float>()[1], -std::numeric_limits<float>::infinity());
      for (size_t d = 0; d < 8; ++d) {
        EXPECT_EQ(o.out.flat<float>()[8 + d], 0);
        // One key only: its value.
        EXPECT_NEAR(o.out.flat<float>()[d], o.v.flat<float>()[d], 1e-6);
      }
    }
  }
}

TEST(Attention, ANaNIsNotHidden) {
  for (const int64_t n : {2, 40, 130}) {
    World world;
    Operands o(world, n, 1, 1, 8);
    o.k.flat<float>()[3] = std::nanf("");  // key 0, which everybody sees
    o.forward(world);
    for (const float x : o.lse.flat<float>()) EXPECT_TRUE(std::isnan(x));
    for (const float x : o.out.flat<float>()) EXPECT_TRUE(std::isnan(x));
  }
}

TEST(Attention, ScratchDoesNotGrowWithTheSquareOfTheLength) {
  World world;
  const int64_t n = 2048;
  Operands o(world, n, 1, 1, 16);
  o.forward(world), o.backward(world);
  EXPECT_LT(world.memory.peak().of(Category::workspace), n * n * 4 / 8);
  EXPECT_EQ(world.memory.live().of(Category::workspace), 0);
}

TEST(AttentionDropout, KeepsTheRightShare) {
  std::vector<int64_t> tokens(1);
  for (const double rate : {0.0, 0.1, 0.5, 0.9}) {
    const AttentionDropout dropout{rate, Random(3, 4), {tokens.data(), DType::i64, {1, 1}}};
    int64_t kept = 0;
    const int64_t n = 200000;
    for (int64_t i = 0; i < n; ++i) kept += attention_keeps(dropout, i / 100, i % 5, i % 100);
    EXPECT_NEAR(double(kept) / double(n), 1 - rate,
                5 * std::sqrt(rate * (1 - rate) / double(n)) + 1e-9);
  }
}

TEST(AttentionDropout, DependsOnTokenHeadKeyAndRandom) {
  std::vector<int64_t> tokens(1);
  const AttentionDropout a{0.5, Random(3, 4), {tokens.data(), DType::i64, {1, 1}}};
  const AttentionDropout b{0.5, Random(3, 5), {tokens.data(), DType::i64, {1, 1}}};
  int token = 0, head = 0, key = 0, stream = 0;
  for (int64_t j = 0; j < 1000; ++j) {
    const bool kept = attention_keeps(a, 7, 2, j);
    token += kept != attention_keeps(a, 8, 2, j);
    head += kept != attention_keeps(a, 7, 3, j);
    key += kept != attention_keeps(a, 7, 2, j + 1);
    stream += kept != attention_keeps(b, 7, 2, j);
  }
  for (const int differ : {token, head, key, stream}) EXPECT_NEAR(differ, 500, 80);
}

// One call over 130 queries, and two calls over parts of it: the same mask, so the same output.
TEST(AttentionDropout, TheMaskDoesNotDependOnHowASequenceIsSplit) {
  for (const int64_t split : {3, 70}) {
    World world;
    const int64_t n = 130;
    Operands whole(world, n, 2, 2, 16), parts(world, n, 2, 2, 16);
    std::vector<int64_t> tokens;
    for (int64_t i = 0; i < n; ++i) tokens.push_back(1000 + i);
    const auto dropout = [&](int64_t from, int64_t to) {
      return AttentionDropout{
          0.4, Random(1, 2), {tokens.data() + from, DType::i64, {1, to - from}}};
    };
    whole.forward(world, {}, {}, dropout(0, n));
    for (const auto& [from, to] : {std::pair{int64_t{0}, split}, std::pair{split, n}}) {
      const Tensor lse(world.memory, Category::activation, DType::f32, {1, 2, to - from});
      attention_forward(world.ctx, {.q_offset = from}, whole.q.view().slice(1, from, to),
                        whole.k.view().slice(1, 0, to), whole.v.view().slice(1, 0, to), {},
                        dropout(from, to), parts.out.view().slice(1, from, to), lse);
    }
    EXPECT_LT(relative_error(parts.out, whole.out), 1e-6);
  }
}

}  // namespace
}  // namespace fivefold::kernels
