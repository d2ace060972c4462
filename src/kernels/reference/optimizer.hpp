#pragma once
// AdamW and the sum of squares over n elements.

#include <cmath>
#include <cstdint>

#include "kernels/ops.hpp"
#include "tensor/dtype.hpp"

namespace fivefold::kernels {

// The factors of an AdamW step that are the same for every element.
struct AdamFactors {
  double grad_scale, beta1, beta2, eps;
  double step_size;   // lr / (1 - beta1^t)
  double root_scale;  // 1 / sqrt(1 - beta2^t)
  double decay;       // lr * weight_decay
};

inline AdamFactors factors_of(const AdamW& args) {
  const double t = double(args.step);
  return {args.grad_scale,
          args.beta1,
          args.beta2,
          args.eps,
          args.lr / (1 - std::pow(args.beta1, t)),
          1 / std::sqrt(1 - std::pow(args.beta2, t)),
          args.lr * args.weight_decay};
}

namespace reference {

// T is the weights' own dtype; `low` may be null.
template <class T>
void adamw(const AdamFactors& f, T* w, const T* g, T* m, T* v, bf16* low, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double gradient = f.grad_scale * g[i];
    m[i] = T(f.beta1 * m[i] + (1 - f.beta1) * gradient);
    v[i] = T(f.beta2 * v[i] + (1 - f.beta2) * gradient * gradient);
    const double update = f.step_size * m[i] / (std::sqrt(double(v[i])) * f.root_scale + f.eps);
    w[i] = T(w[i] - update - f.decay * w[i]);
    if (low != nullptr) low[i] = to_bf16(float(w[i]));
  }
}

template <class T>
double sum_of_squares(const T* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += double(load(x[i])) * load(x[i]);
  return sum;
}

}  // namespace reference
}  // namespace fivefold::kernels
