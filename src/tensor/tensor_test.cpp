#include "tensor/tensor.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fivefold {
namespace {

TEST(DType, Bf16RoundsToNearestEven) {
  EXPECT_EQ(to_float(to_bf16(1.0f)), 1.0f);
  EXPECT_EQ(to_float(to_bf16(1.0f + 0x1p-8f)), 1.0f);              // tie to even, down
  EXPECT_EQ(to_float(to_bf16(1.0f + 3 * 0x1p-8f)), 1.0f + 0x1p-6f);  // tie to even, up
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isinf(to_float(to_bf16(std::numeric_limits<float>::max()))));
}

TEST(Memory, CountsLiveAndPeakExactly) {
  Memory memory;
  {
    Tensor a(memory, Category::activation, DType::f32, {10, 10});
    EXPECT_EQ(memory.live().of(Category::activation), 400);
    {
      Tensor b(memory, Category::activation, DType::f64, {3});
      Tensor g(memory, Category::gradient, DType::bf16, {5});
      EXPECT_EQ(memory.live().total(), 434);
    }
    EXPECT_EQ(memory.live().total(), 400);
    EXPECT_EQ(memory.peak().of(Category::activation), 424);
    EXPECT_EQ(memory.at_total_peak().of(Category::gradient), 10);
    memory.reset_peak();
    EXPECT_EQ(memory.peak().total(), 400);
    Tensor moved = std::move(a);
    EXPECT_EQ(memory.live().total(), 400);
    a = Tensor(memory, Category::workspace, DType::f32, {1});
    moved = std::move(a);  // the first block goes back at once
    EXPECT_EQ(memory.live().total(), 4);
  }
  EXPECT_EQ(memory.live().total(), 0);
}

TEST(Memory, SteadyUseTakesNothingNew) {
  Memory memory;
  { Tensor a(memory, Category::activation, DType::f32, {1 << 20}); }
  const int64_t reserved = memory.reserved();
  for (int i = 0; i < 10; ++i) Tensor a(memory, Category::workspace, DType::f32, {1 << 20});
  EXPECT_EQ(memory.reserved(), reserved);
}

TEST(View, SlicesAndSplits) {
  Memory memory;
  Tensor t(memory, Category::workspace, DType::f32, {4, 6});
  for (int i = 0; i < 24; ++i) t.flat<float>()[size_t(i)] = float(i);
  const View columns = t.view().slice(1, 2, 6);
  EXPECT_EQ(columns.row_stride(), 6);
  EXPECT_FALSE(columns.contiguous());
  const View heads = columns.split_last(2).split_first(2);  // [2, 2, 2, 2]
  EXPECT_EQ(heads.rank, 4);
  EXPECT_EQ(heads.as<float>()[heads.stride[0] + heads.stride[1] + heads.stride[2]],
            float((2 + 1) * 6 + 2 + 2));
  EXPECT_DEATH((void)heads.as<double>(), "float32 view read as float64");
}

}  // namespace
}  // namespace fivefold
