// The matrix products of ops.hpp: shapes are checked here, once for all implementations.

#include "kernels/reference/linear.hpp"
#include "kernels/matmul.hpp"

namespace fivefold::kernels {
namespace {

// Rows of a view that may have no columns: rows() cannot tell then.
int64_t outer(const ConstView& view) {
  int64_t rows = 1;
  for (int d = 0; d + 1 < view.rank; ++d) rows *= view.size[size_t(d)];
  return rows;
}

void check_float(const char* op, const ConstView& view) {
  CHECK(view.dtype == DType::f32 || view.dtype == DType::f64 || view.dtype == DType::bf16,
        "{} of {}", op, name_of(view.dtype));
}

// rows [M,a], weight [b,c] with a, b, c, M as the op pairs them.
void check_operand(const char* op, const char* name, const ConstView& view, int64_t rows,
                   int64_t columns, DType dtype) {
  CHECK(view.rank >= 1 && outer(view) == rows && view.columns() == columns,
        "{}: {} is [{}, {}], not [{}, {}]", op, name, outer(view), view.columns(), rows, columns);
  CHECK(view.dtype == dtype, "{}: {} is {}, not {}", op, name, name_of(view.dtype), name_of(dtype));
}

void check_vector(const char* op, const char* name, const ConstView& view, int64_t count,
                  DType dtype) {
  if (!view) return;
  CHECK(view.count() == count && view.contiguous() && view.dtype == dtype,
        "{}: {} is {} {} elements, not {} contiguous {}", op, name, view.count(),
        name_of(view.dtype), count, name_of(dtype));
}

}  // namespace

void linear_forward(Context& ctx, ConstView x, ConstView w, ConstView bias, View y, Write write) {
  constexpr const char* op = "linear_forward";
  check_float(op, y);
  check_operand(op, "x", x, outer(y), w.columns(), y.dtype);
  check_operand(op, "w", w, y.columns(), x.columns(), y.dtype);
  check_vector(op, "bias", bias, y.columns(), y.dtype);
  if (ctx.backend == Backend::reference) return reference::linear_forward(x, w, bias, y, write);
  matmul(ctx, {x}, {w, true}, y, {.bias = bias, .write = write});
}

void linear_backward_input(Context& ctx, ConstView dy, ConstView w, View dx, Write write) {
  constexpr const char* op = "linear_backward_input";
  check_float(op, dx);
  check_operand(op, "dy", dy, outer(dx), dy.columns(), dx.dtype);
  check_operand(op, "w", w, dy.columns(), dx.columns(), dx.dtype);
  if (ctx.backend == Backend::reference) return reference::linear_backward_input(dy, w, dx, write);
  matmul(ctx, {dy}, {w}, dx, {.write = write});
}

void linear_backward_weight(Context& ctx, ConstView dy, ConstView x, View dw, View dbias) {
  constexpr const char* op = "linear_backward_weight";
  check_float(op, dy);
  check_operand(op, "x", x, outer(dy), x.columns(), dy.dtype);
  check_operand(op, "dw", dw, dy.columns(), x.columns(), accumulator_of(dy.dtype));
  check_vector(op, "dbias", dbias, dy.columns(), accumulator_of(dy.dtype));
  if (ctx.backend == Backend::reference) return reference::linear_backward_weight(dy, x, dw, dbias);
  matmul(ctx, {dy, true}, {x}, dw, {.row_sums = dbias, .write = Write::accumulate});
}

}  // namespace fivefold::kernels
