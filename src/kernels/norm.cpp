// RMSNorm and LayerNorm: one set of kernels, the mean and the bias left out for RMSNorm.

#include "kernels/reference/norm.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/ops.hpp"
#include "tensor/tensor.hpp"

#define KERNEL_FILE "kernels/cpu/norm.inl"
#include "kernels/cpu/each_isa.inl"

namespace fivefold::kernels {
namespace {

void check_rows(const ConstView& x, const ConstView& other, const char* name) {
  CHECK(other.columns() == x.columns() && other.rows() == x.rows(),
        "{} is [{}, {}] where x is [{}, {}]", name, other.rows(), other.columns(), x.rows(),
        x.columns());
}

void forward(Context& ctx, const ConstView& x, const ConstView& w, const ConstView& b, double eps,
             const View& y, const View& mean, const View& rstd) {
  check_rows(x, y, "y");
  with_type(x.dtype, [&]<class T>() {
    const auto x_rows = rows_of<const T>(x);
    const auto y_rows = rows_of<T>(y);
    const T* scale = elements<T>(w, x.columns(), "w");
    const T* shift = b ? elements<T>(b, x.columns(), "b") : nullptr;
    auto* means = mean ? elements<Accumulator<T>>(mean, x.rows(), "mean") : nullptr;
    auto* rstds = elements<Accumulator<T>>(rstd, x.rows(), "rstd");
    const auto kernel = KERNEL(ctx, T, norm_forward);
    split(ctx, x.rows(), row_grain(x.columns()), [&](int64_t begin, int64_t end) {
      kernel(x_rows, scale, shift, eps, y_rows, means, rstds, begin, end);
    });
  });
}

void backward_input(Context& ctx, const ConstView& dy, const ConstView& x, const ConstView& w,
                    const ConstView& mean, const ConstView& rstd, const View& dx, Write write) {
  check_rows(x, dy, "dy");
  check_rows(x, dx, "dx");
  with_type(x.dtype, [&]<class T>() {
    const auto dy_rows = rows_of<const T>(dy);
    const auto x_rows = rows_of<const T>(x);
    const auto dx_rows = rows_of<T>(dx);
    const T* scale = elements<T>(w, x.columns(), "w");
    const auto* means = mean ? elements<Accumulator<T>>(mean, x.rows(), "mean") : nullptr;
    const auto* rstds = elements<Accumulator<T>>(rstd, x.rows(), "rstd");
    const auto kernel = KERNEL(ctx, T, norm_backward_input);
    split(ctx, x.rows(), row_grain(x.columns()), [&](int64_t begin, int64_t end) {
      kernel(dy_rows, x_rows, scale, means, rstds, dx_rows, write == Write::accumulate, begin, end);
    });
  });
}

// Rows are summed in blocks whose size depends on the shape alone, then the blocks in order: the
// same bits at any number of threads.
void backward_weight(Context& ctx, const ConstView& dy, const ConstView& x, const ConstView& mean,
                     const ConstView& rstd, const View& dw, const View& db) {
  check_rows(x, dy, "dy");
  const int64_t rows = x.rows(), columns = x.columns();
  if (rows == 0) return;
  with_type(x.dtype, [&]<class T>() {
    using A = Accumulator<T>;
    const auto dy_rows = rows_of<const T>(dy);
    const auto x_rows = rows_of<const T>(x);
    const auto* means = mean ? elements<A>(mean, rows, "mean") : nullptr;
    const auto* rstds = elements<A>(rstd, rows, "rstd");
    A* weight = elements<A>(dw, columns, "dw");
    A* bias = db ? elements<A>(db, columns, "db") : nullptr;
    const auto kernel = KERNEL(ctx, T, norm_backward_weight);

    const int64_t block =
        ctx.backend == Backend::reference ? rows : std::clamp<int64_t>(65536 / columns, 32, 4096);
    const int64_t blocks = (rows + block - 1) / block;
    const int64_t width = bias != nullptr ? 2 * columns : columns;
    Tensor partial(ctx.memory, Category::workspace, DTypeOf<A>::value, {blocks, width});
    A* parts = partial.flat<A>().data();
    split(ctx, blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        A* part = parts + i * width;
        kernel(dy_rows, x_rows, means, rstds, part, bias != nullptr ? part + columns : nullptr,
               i * block, std::min(rows, (i + 1) * block));
      }
    });
    split(ctx, columns, 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < blocks; ++i) {
        const A* part = parts + i * width;
        for (int64_t c = begin; c < end; ++c) weight[c] += part[c];
        if (bias == nullptr) continue;
        for (int64_t c = begin; c < end; ++c) bias[c] += part[columns + c];
      }
    });
  });
}

}  // namespace

void rmsnorm_forward(Context& ctx, ConstView x, ConstView w, double eps, View y, View rstd) {
  forward(ctx, x, w, {}, eps, y, {}, rstd);
}

void rmsnorm_backward_input(Context& ctx, ConstView dy, ConstView x, ConstView w, ConstView rstd,
                            View dx, Write write) {
  backward_input(ctx, dy, x, w, {}, rstd, dx, write);
}

void rmsnorm_backward_weight(Context& ctx, ConstView dy, ConstView x, ConstView rstd, View dw) {
  backward_weight(ctx, dy, x, {}, rstd, dw, {});
}

void layernorm_forward(Context& ctx, ConstView x, ConstView w, ConstView b, double eps, View y,
                       View mean, View rstd) {
  CHECK(b && mean, "LayerNorm has a bias and a mean");
  forward(ctx, x, w, b, eps, y, mean, rstd);
}

void layernorm_backward_input(Context& ctx, ConstView dy, ConstView x, ConstView w, ConstView mean,
                              ConstView rstd, View dx, Write write) {
  CHECK(mean, "LayerNorm has a mean");
  backward_input(ctx, dy, x, w, mean, rstd, dx, write);
}

void layernorm_backward_weight(Context& ctx, ConstView dy, ConstView x, ConstView mean,
                               ConstView rstd, View dw, View db) {
  CHECK(mean && db, "LayerNorm has a bias and a mean");
  backward_weight(ctx, dy, x, mean, rstd, dw, db);
}

}  // namespace fivefold::kernels
