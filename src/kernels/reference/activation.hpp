#pragma once
// SwiGLU and GELU over n elements, in float64.

#include <cmath>
#include <cstdint>
#include <numbers>

#include "tensor/dtype.hpp"

namespace fivefold::kernels::reference {

template <class T>
void swiglu_forward(const T* gate, const T* up, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double g = load(gate[i]);
    store(y[i], Accumulator<T>(g / (1 + std::exp(-g)) * load(up[i])));
  }
}

template <class T>
void swiglu_backward(const T* dy, const T* gate, const T* up, T* dgate, T* dup, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double g = load(gate[i]), u = load(up[i]), d = load(dy[i]);
    const double sigmoid = 1 / (1 + std::exp(-g));
    store(dgate[i], Accumulator<T>(d * u * sigmoid * (1 + g * (1 - sigmoid))));
    store(dup[i], Accumulator<T>(d * g * sigmoid));
  }
}

// gelu(x) = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
inline constexpr double gelu_scale = 0.79788456080286535588;  // sqrt(2/pi)
inline constexpr double gelu_cubic = 0.044715;

template <class T>
void gelu_forward(const T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double v = load(x[i]);
    const double t = std::tanh(gelu_scale * (v + gelu_cubic * v * v * v));
    store(y[i], Accumulator<T>(0.5 * v * (1 + t)));
  }
}

template <class T>
void gelu_backward(const T* dy, const T* x, T* dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double v = load(x[i]);
    const double t = std::tanh(gelu_scale * (v + gelu_cubic * v * v * v));
    const double slope = gelu_scale * (1 + 3 * gelu_cubic * v * v);
    store(dx[i], Accumulator<T>(load(dy[i]) * (0.5 * (1 + t) + 0.5 * v * (1 - t * t) * slope)));
  }
}

}  // namespace fivefold::kernels::reference
