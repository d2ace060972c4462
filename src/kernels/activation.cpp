#include "kernels/reference/activation.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/ops.hpp"

#define KERNEL_FILE "kernels/cpu/activation.inl"
#include "kernels/cpu/each_isa.inl"

namespace fivefold::kernels {

void swiglu_forward(Context& ctx, ConstView gate, ConstView up, View y) {
  with_type(gate.dtype, [&]<class T>() {
    const auto gates = rows_of<const T>(gate);
    const auto ups = rows_of<const T>(up);
    const auto ys = rows_of<T>(y);
    const auto kernel = KERNEL(ctx, T, swiglu_forward);
    split_elements(
        ctx,
        [&](int64_t n, int64_t begin, int64_t end) {
          kernel(gates[n] + begin, ups[n] + begin, ys[n] + begin, end - begin);
        },
        gate, up, y);
  });
}

void swiglu_backward(Context& ctx, ConstView dy, ConstView gate, ConstView up, View dgate,
                     View dup) {
  with_type(gate.dtype, [&]<class T>() {
    const auto dys = rows_of<const T>(dy);
    const auto gates = rows_of<const T>(gate);
    const auto ups = rows_of<const T>(up);
    const auto dgates = rows_of<T>(dgate);
    const auto dups = rows_of<T>(dup);
    const auto kernel = KERNEL(ctx, T, swiglu_backward);
    split_elements(
        ctx,
        [&](int64_t n, int64_t begin, int64_t end) {
          kernel(dys[n] + begin, gates[n] + begin, ups[n] + begin, dgates[n] + begin,
                 dups[n] + begin, end - begin);
        },
        dy, gate, up, dgate, dup);
  });
}

void gelu_forward(Context& ctx, ConstView x, View y) {
  with_type(x.dtype, [&]<class T>() {
    const auto xs = rows_of<const T>(x);
    const auto ys = rows_of<T>(y);
    const auto kernel = KERNEL(ctx, T, gelu_forward);
    split_elements(
        ctx,
        [&](int64_t n, int64_t begin, int64_t end) {
          kernel(xs[n] + begin, ys[n] + begin, end - begin);
        },
        x, y);
  });
}

void gelu_backward(Context& ctx, ConstView dy, ConstView x, View dx) {
  with_type(x.dtype, [&]<class T>() {
    const auto dys = rows_of<const T>(dy);
    const auto xs = rows_of<const T>(x);
    const auto dxs = rows_of<T>(dx);
    const auto kernel = KERNEL(ctx, T, gelu_backward);
    split_elements(
        ctx,
        [&](int64_t n, int64_t begin, int64_t end) {
          kernel(dys[n] + begin, xs[n] + begin, dxs[n] + begin, end - begin);
        },
        dy, x, dx);
  });
}

}  // namespace fivefold::kernels
