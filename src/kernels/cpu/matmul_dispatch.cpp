#include "kernels/matmul.hpp"

namespace fivefold::kernels {
namespace {

// Elements between rows. A matrix without elements has no rows to walk.
int64_t stride_of(const ConstView& view) {
  return view.count() == 0 ? view.columns() : view.row_stride();
}

int64_t outer(const ConstView& view) {
  int64_t rows = 1;
  for (int d = 0; d + 1 < view.rank; ++d) rows *= view.size[size_t(d)];
  return rows;
}

// row_sums[m] += sum over k of op(a).
template <class T>
void add_row_sums(Context& ctx, const detail::MatmulProblem& p) {
  const T* a = p.a.view.as<T>();
  auto* sums = p.extras.row_sums.as<Accumulator<T>>();
  const int64_t step = p.a.transposed ? 1 : p.a_stride, k_step = p.a.transposed ? p.a_stride : 1;
  ctx.pool.parallel_for(p.m, 64, [&](int64_t begin, int64_t end) {
    for (int64_t k = 0; k < p.k; ++k) {
      for (int64_t m = begin; m < end; ++m) sums[m] += load(a[m * step + k * k_step]);
    }
  });
}

void add_row_sums(Context& ctx, const detail::MatmulProblem& p) {
  switch (p.a.view.dtype) {
    case DType::f32:
      return add_row_sums<float>(ctx, p);
    case DType::f64:
      return add_row_sums<double>(ctx, p);
    case DType::bf16:
      return add_row_sums<bf16>(ctx, p);
    default:
      CHECK(false, "matmul of {}", name_of(p.a.view.dtype));
  }
}

}  // namespace

MatmulEngine engine_of(const Context& ctx) {
  if (ctx.matmul != MatmulEngine::automatic) return ctx.matmul;
  return ctx.isa == Isa::portable ? MatmulEngine::openblas : MatmulEngine::packed;
}

void matmul(Context& ctx, MatmulOperand a, MatmulOperand b, View c, const MatmulExtras& extras) {
  detail::MatmulProblem p;
  p.m = outer(c);
  p.n = c.columns();
  p.k = a.transposed ? outer(a.view) : a.view.columns();
  const int64_t a_rows = a.transposed ? p.k : p.m, a_columns = a.transposed ? p.m : p.k;
  const int64_t b_rows = b.transposed ? p.n : p.k, b_columns = b.transposed ? p.k : p.n;
  CHECK(outer(a.view) == a_rows && a.view.columns() == a_columns && outer(b.view) == b_rows &&
            b.view.columns() == b_columns,
        "matmul of [{}, {}] and [{}, {}] into [{}, {}]", outer(a.view), a.view.columns(),
        outer(b.view), b.view.columns(), p.m, p.n);
  CHECK(a.view.dtype == b.view.dtype &&
            (c.dtype == a.view.dtype || c.dtype == accumulator_of(a.view.dtype)),
        "matmul of {} and {} into {}", name_of(a.view.dtype), name_of(b.view.dtype),
        name_of(c.dtype));
  if (p.m == 0) return;
  p.a = a;
  p.b = b;
  p.c = c;
  p.extras = extras;
  p.a_stride = stride_of(a.view);
  p.b_stride = stride_of(b.view);
  p.c_stride = stride_of(c);
  const bool openblas = engine_of(ctx) == MatmulEngine::openblas;
  if (extras.row_sums && (openblas || p.n == 0)) add_row_sums(ctx, p);
  if (p.n == 0) return;
  if (openblas) return detail::matmul_openblas(ctx, p);
  if (detail::matmul_few_rows(ctx, p)) return;
  detail::matmul_packed(ctx, p);
}

}  // namespace fivefold::kernels
