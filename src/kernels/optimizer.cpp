#include "kernels/reference/optimizer.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/ops.hpp"
#include "tensor/tensor.hpp"

#define KERNEL_FILE "kernels/cpu/optimizer.inl"
#include "kernels/cpu/each_isa.inl"

namespace fivefold::kernels {

void adamw(Context& ctx, const AdamW& args, View w, ConstView g, View m, View v, View low) {
  CHECK(args.step >= 1, "step {}: steps count from 1", args.step);
  CHECK(w.dtype == DType::f32 || w.dtype == DType::f64, "weights in {}", name_of(w.dtype));
  const int64_t count = w.count();
  const AdamFactors factors = factors_of(args);
  with_type(w.dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bf16>) {
      T* weights = elements<T>(w, count, "w");
      const T* gradients = elements<T>(g, count, "g");
      T* means = elements<T>(m, count, "m");
      T* squares = elements<T>(v, count, "v");
      bf16* lows = low ? elements<bf16>(low, count, "low") : nullptr;
      const auto kernel = KERNEL(ctx, T, adamw);
      split(ctx, count, 16384, [&](int64_t begin, int64_t end) {
        kernel(factors, weights + begin, gradients + begin, means + begin, squares + begin,
               lows != nullptr ? lows + begin : nullptr, end - begin);
      });
    }
  });
}

double sum_of_squares(Context& ctx, ConstView x) {
  constexpr int64_t block = 65536;
  const int64_t count = x.count(), blocks = (count + block - 1) / block;
  if (count == 0) return 0;
  double sum = 0;
  with_type(x.dtype, [&]<class T>() {
    const T* first = elements<T>(x, count, "x");
    const auto kernel = KERNEL(ctx, T, sum_of_squares);
    Tensor partial(ctx.memory, Category::workspace, DType::f64, {blocks});
    const auto parts = partial.flat<double>();
    split(ctx, blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        parts[size_t(i)] = kernel(first + i * block, std::min(block, count - i * block));
      }
    });
    for (const double part : parts) sum += part;
  });
  return sum;
}

}  // namespace fivefold::kernels
