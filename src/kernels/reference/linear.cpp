#include "kernels/reference/linear.hpp"

namespace fivefold::kernels::reference {
namespace {

template <class T>
struct Matrix {
  T* data;
  int64_t stride;
  T& operator()(int64_t row, int64_t column) const { return data[row * stride + column]; }
};

template <class T, class V>
auto matrix(const V& view) {
  auto* data = view.template as<T>();
  return Matrix<std::remove_pointer_t<decltype(data)>>{data, view.row_stride()};
}

template <class T>
void forward(ConstView x_view, ConstView w_view, ConstView bias, View y_view, Write write) {
  const auto x = matrix<T>(x_view);
  const auto w = matrix<T>(w_view);
  const auto y = matrix<T>(y_view);
  const int64_t in = w_view.columns();
  for (int64_t m = 0; m < y_view.rows(); ++m) {
    for (int64_t n = 0; n < y_view.columns(); ++n) {
      Accumulator<T> sum = 0;
      for (int64_t k = 0; k < in; ++k) sum += load(x(m, k)) * load(w(n, k));
      if (bias) sum += load(bias.as<T>()[n]);
      if (write == Write::accumulate) sum += load(y(m, n));
      store(y(m, n), sum);
    }
  }
}

template <class T>
void backward_input(ConstView dy_view, ConstView w_view, View dx_view, Write write) {
  const auto dy = matrix<T>(dy_view);
  const auto w = matrix<T>(w_view);
  const auto dx = matrix<T>(dx_view);
  const int64_t out = dy_view.columns();
  for (int64_t m = 0; m < dx_view.rows(); ++m) {
    for (int64_t k = 0; k < dx_view.columns(); ++k) {
      Accumulator<T> sum = 0;
      for (int64_t n = 0; n < out; ++n) sum += load(dy(m, n)) * load(w(n, k));
      if (write == Write::accumulate) sum += load(dx(m, k));
      store(dx(m, k), sum);
    }
  }
}

template <class T>
void backward_weight(ConstView dy_view, ConstView x_view, View dw_view, View dbias) {
  const auto dy = matrix<T>(dy_view);
  const auto x = matrix<T>(x_view);
  const auto dw = matrix<Accumulator<T>>(dw_view);
  const int64_t rows = dy_view.rows();
  for (int64_t n = 0; n < dy_view.columns(); ++n) {
    for (int64_t k = 0; k < x_view.columns(); ++k) {
      Accumulator<T> sum = 0;
      for (int64_t m = 0; m < rows; ++m) sum += load(dy(m, n)) * load(x(m, k));
      dw(n, k) += sum;
    }
    if (!dbias) continue;
    Accumulator<T> sum = 0;
    for (int64_t m = 0; m < rows; ++m) sum += load(dy(m, n));
    dbias.as<Accumulator<T>>()[n] += sum;
  }
}

}  // namespace

void linear_forward(ConstView x, ConstView w, ConstView bias, View y, Write write) {
  switch (y.dtype) {
    case DType::f32: return forward<float>(x, w, bias, y, write);
    case DType::f64: return forward<double>(x, w, bias, y, write);
    case DType::bf16: return forward<bf16>(x, w, bias, y, write);
    default: CHECK(false, "linear_forward of {}", name_of(y.dtype));
  }
}

void linear_backward_input(ConstView dy, ConstView w, View dx, Write write) {
  switch (dx.dtype) {
    case DType::f32: return backward_input<float>(dy, w, dx, write);
    case DType::f64: return backward_input<double>(dy, w, dx, write);
    case DType::bf16: return backward_input<bf16>(dy, w, dx, write);
    default: CHECK(false, "linear_backward_input of {}", name_of(dx.dtype));
  }
}

void linear_backward_weight(ConstView dy, ConstView x, View dw, View dbias) {
  switch (dy.dtype) {
    case DType::f32: return backward_weight<float>(dy, x, dw, dbias);
    case DType::f64: return backward_weight<double>(dy, x, dw, dbias);
    case DType::bf16: return backward_weight<bf16>(dy, x, dw, dbias);
    default: CHECK(false, "linear_backward_weight of {}", name_of(dy.dtype));
  }
}

}  // namespace fivefold::kernels::reference
