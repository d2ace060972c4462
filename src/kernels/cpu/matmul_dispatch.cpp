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
  if (p.m == 0 || p.n == 0) return;
  p.a = a;
  p.b = b;
  p.c = c;
  p.extras = extras;
  p.a_stride = stride_of(a.view);
  p.b_stride = stride_of(b.view);
  p.c_stride = stride_of(c);
  if (engine_of(ctx) == MatmulEngine::openblas) return detail::matmul_openblas(ctx, p);
  if (detail::matmul_few_rows(ctx, p)) return;
  detail::matmul_packed(ctx, p);
}

}  // namespace fivefold::kernels
