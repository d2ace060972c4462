// y = x w^T for the handful of rows that generation has: memory's speed bounds it, so w is read
// once, where it lies. Packing would read it, write it and read it again.

#include "kernels/matmul.hpp"
#include "tensor/tensor.hpp"

#define KERNEL_FILE "kernels/cpu/matmul_few_rows.inl"
#include "kernels/cpu/each_isa.inl"

namespace fivefold::kernels {
namespace {

constexpr int64_t most_rows = 8;

// Columns [begin, end) of y from their dot products.
template <class T>
void finish(const detail::MatmulProblem& p, const float* dots, int64_t begin, int64_t end) {
  T* y = p.c.as<T>();
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = begin; j < end; ++j) {
      float value = dots[i * p.n + j];
      if (p.extras.bias) {
        value += p.extras.bias.dtype == DType::bf16 ? load(p.extras.bias.as<bf16>()[j])
                                                    : p.extras.bias.as<float>()[j];
      }
      T& to = y[i * p.c_stride + j];
      store(to, p.extras.write == Write::accumulate ? load(to) + value : value);
    }
  }
}

template <class Source>
void multiply(Context& ctx, const detail::MatmulProblem& p) {
  // x in float32 and the dot products: small beside w.
  Tensor wide(ctx.memory, Category::workspace, DType::f32, {p.m, p.k});
  Tensor dots(ctx.memory, Category::workspace, DType::f32, {p.m, p.n});
  float* x = wide.flat<float>().data();
  float* out = dots.flat<float>().data();
  const Source* from = p.a.view.as<Source>();
  const Source* w = p.b.view.as<Source>();
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t k = 0; k < p.k; ++k) x[i * p.k + k] = load(from[i * p.a_stride + k]);
  }
  const auto few = PICK(ctx, few_rows<Source>);
  const auto range = [&](int64_t begin, int64_t end) {
    few(x, p.k, p.m, w, p.b_stride, p.k, out, p.n, begin, end);
    if (p.c.dtype == DType::bf16)
      finish<bf16>(p, out, begin, end);
    else
      finish<float>(p, out, begin, end);
  };
  // Under some 10 us waking a thread costs more than it brings.
  if (p.m * p.n * p.k < 100'000) return range(0, p.n);
  ctx.pool.parallel_for(p.n, 16, range);
}

}  // namespace

bool detail::matmul_few_rows(Context& ctx, const MatmulProblem& p) {
  if (p.m > most_rows || p.a.transposed || !p.b.transposed || p.extras.row_sums) return false;
  switch (p.a.view.dtype) {
    case DType::f32:
      multiply<float>(ctx, p);
      return true;
    case DType::bf16:
      multiply<bf16>(ctx, p);
      return true;
    default:
      return false;
  }
}

}  // namespace fivefold::kernels
