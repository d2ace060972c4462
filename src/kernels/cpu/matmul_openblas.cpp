// Matrix products by OpenBLAS, each call one thread, the calls split over our own pool.

#include <cblas.h>

#include "kernels/matmul.hpp"
#include "tensor/tensor.hpp"

// Of the OpenMP runtime that OpenBLAS was built with; it sets the calling thread's number alone.
extern "C" void omp_set_num_threads(int threads);

namespace fivefold::kernels {
namespace {

void gemm(const detail::MatmulProblem& p, const float* a, const float* b, float beta, float* c,
          int64_t m, int64_t n) {
  cblas_sgemm(CblasRowMajor, p.a.transposed ? CblasTrans : CblasNoTrans,
              p.b.transposed ? CblasTrans : CblasNoTrans, blasint(m), blasint(n), blasint(p.k), 1,
              a, blasint(p.a_stride), b, blasint(p.b_stride), beta, c, blasint(p.c_stride));
}
void gemm(const detail::MatmulProblem& p, const double* a, const double* b, double beta, double* c,
          int64_t m, int64_t n) {
  cblas_dgemm(CblasRowMajor, p.a.transposed ? CblasTrans : CblasNoTrans,
              p.b.transposed ? CblasTrans : CblasNoTrans, blasint(m), blasint(n), blasint(p.k), 1,
              a, blasint(p.a_stride), b, blasint(p.b_stride), beta, c, blasint(p.c_stride));
}

// Sets c to what op(a) op(b) is added to.
template <class T>
void start(const detail::MatmulProblem& p, T* c, int64_t rows, int64_t columns, const T* bias) {
  for (int64_t i = 0; i < rows; ++i, c += p.c_stride) {
    if (p.extras.write == Write::overwrite) std::fill_n(c, columns, T(0));
    if (bias == nullptr) continue;
    for (int64_t j = 0; j < columns; ++j) c[j] += bias[j];
  }
}

// Everything in T already.
template <class T>
void multiply(Context& ctx, const detail::MatmulProblem& p) {
  const T* a = p.a.view.as<T>();
  const T* b = p.b.view.as<T>();
  T* c = p.c.as<T>();
  const T* bias = p.extras.bias ? p.extras.bias.as<T>() : nullptr;
  const bool preset = p.extras.write == Write::accumulate || bias != nullptr || p.k == 0;
  // The larger side is split: each part then reads all of the smaller operand.
  const bool by_rows = p.m > p.n;
  ctx.pool.parallel_for(by_rows ? p.m : p.n, 16, [&](int64_t begin, int64_t end) {
    omp_set_num_threads(1);
    const int64_t row = by_rows ? begin : 0, rows = by_rows ? end - begin : p.m;
    const int64_t column = by_rows ? 0 : begin, columns = by_rows ? p.n : end - begin;
    T* part = c + row * p.c_stride + column;
    if (preset) start(p, part, rows, columns, bias == nullptr ? nullptr : bias + column);
    if (p.k == 0) return;
    gemm(p, a + row * (p.a.transposed ? 1 : p.a_stride),
         b + column * (p.b.transposed ? p.b_stride : 1), preset ? T(1) : T(0), part, rows, columns);
  });
}

// A contiguous float32 copy of a bf16 view.
Tensor widened(Context& ctx, const ConstView& view, int64_t stride) {
  const int64_t rows = view.rows(), columns = view.columns();
  Tensor copy(ctx.memory, Category::workspace, DType::f32, {rows, columns});
  const bf16* from = view.as<bf16>();
  float* to = copy.flat<float>().data();
  ctx.pool.parallel_for(rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < columns; ++j) to[i * columns + j] = load(from[i * stride + j]);
    }
  });
  return copy;
}

void narrow(Context& ctx, ConstView from, View to, int64_t to_stride) {
  const float* source = from.as<float>();
  bf16* target = to.as<bf16>();
  const int64_t columns = from.columns();
  ctx.pool.parallel_for(from.rows(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < columns; ++j)
        store(target[i * to_stride + j], source[i * columns + j]);
    }
  });
}

void multiply_bf16(Context& ctx, detail::MatmulProblem p) {
  const Tensor a = widened(ctx, p.a.view, p.a_stride), b = widened(ctx, p.b.view, p.b_stride);
  Tensor c, bias;
  if (p.extras.bias) bias = widened(ctx, p.extras.bias, p.n);
  const View result = p.c;
  const int64_t result_stride = p.c_stride;
  if (result.dtype == DType::bf16) {
    if (p.extras.write == Write::accumulate) {
      c = widened(ctx, p.c, p.c_stride);
    } else {
      c = Tensor(ctx.memory, Category::workspace, DType::f32, {p.m, p.n});
    }
    p.c = c;
    p.c_stride = p.n;
  }
  p.a.view = a;
  p.b.view = b;
  p.extras.bias = bias ? ConstView(bias) : ConstView();
  p.a_stride = p.a.view.columns();
  p.b_stride = p.b.view.columns();
  multiply<float>(ctx, p);
  if (result.dtype == DType::bf16) narrow(ctx, c, result, result_stride);
}

}  // namespace

std::string_view openblas_core() { return openblas_get_corename(); }

void detail::matmul_openblas(Context& ctx, const MatmulProblem& p) {
  switch (p.a.view.dtype) {
    case DType::f32:
      return multiply<float>(ctx, p);
    case DType::f64:
      return multiply<double>(ctx, p);
    case DType::bf16:
      return multiply_bf16(ctx, p);
    default:
      CHECK(false, "matmul of {}", name_of(p.a.view.dtype));
  }
}

}  // namespace fivefold::kernels
