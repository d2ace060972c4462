#include "kernels/reference/elementwise.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/ops.hpp"

#define KERNEL_FILE "kernels/cpu/elementwise.inl"
#include "kernels/cpu/each_isa.inl"

namespace fivefold::kernels {
namespace {

template <class From, class To>
auto pick_convert(const Context& ctx) {
  if constexpr (!std::is_same_v<Common<From, To>, double>) {
    using Pair = Conversion<From, To>;
    if (ctx.backend == Backend::cpu) return PICK(ctx, convert<Pair>);
  }
  return &reference::convert<From, To>;
}

}  // namespace

void convert(Context& ctx, ConstView x, View y, Write write) {
  with_type(x.dtype, [&]<class From>() {
    with_type(y.dtype, [&]<class To>() {
      const auto xs = rows_of<const From>(x);
      const auto ys = rows_of<To>(y);
      const auto kernel = pick_convert<From, To>(ctx);
      split_elements(
          ctx,
          [&](int64_t n, int64_t begin, int64_t end) {
            kernel(xs[n] + begin, ys[n] + begin, write == Write::accumulate, end - begin);
          },
          x, y);
    });
  });
}

void dropout(Context& ctx, View x, double rate, const Random& random, ConstView token_index) {
  CHECK(0 <= rate && rate < 1, "a dropout rate of {}", rate);
  CHECK(x.columns() <= DropoutMask::columns_max, "{} columns", x.columns());
  if (rate == 0) return;
  const int64_t* tokens = elements<int64_t>(token_index, x.rows(), "token_index");
  const DropoutMask mask(rate, random);
  with_type(x.dtype, [&]<class T>() {
    const auto rows = rows_of<T>(x);
    const auto kernel = KERNEL(ctx, T, dropout);
    split(ctx, x.rows(), row_grain(x.columns()),
          [&](int64_t begin, int64_t end) { kernel(rows, mask, tokens, begin, end); });
  });
}

}  // namespace fivefold::kernels
