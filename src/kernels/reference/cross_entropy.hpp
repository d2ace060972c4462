#pragma once
// Cross-entropy over rows [begin, end), as the formulas read.

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/rows.hpp"
#include "tensor/dtype.hpp"

namespace fivefold::kernels::reference {

template <class T>
void cross_entropy_forward(Rows<const T> logits, const int32_t* targets, Accumulator<T>* losses,
                           Accumulator<T>* lse, int64_t begin, int64_t end) {
  for (int64_t n = begin; n < end; ++n) {
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t v = 0; v < logits.columns; ++v) top = std::max<double>(top, load(logits[n][v]));
    for (int64_t v = 0; v < logits.columns; ++v) sum += std::exp(load(logits[n][v]) - top);
    const double log_sum = top + std::log(sum);
    lse[n] = Accumulator<T>(log_sum);
    losses[n] = targets[n] < 0 ? 0 : Accumulator<T>(log_sum - double(load(logits[n][targets[n]])));
  }
}

template <class T>
void cross_entropy_backward(Rows<T> logits, const int32_t* targets, const Accumulator<T>* lse,
                            double scale, int64_t begin, int64_t end) {
  for (int64_t n = begin; n < end; ++n) {
    for (int64_t v = 0; v < logits.columns; ++v) {
      const double p = std::exp(double(load(logits[n][v])) - double(lse[n]));
      const double gradient = targets[n] < 0 ? 0 : (p - (v == targets[n] ? 1 : 0)) * scale;
      store(logits[n][v], Accumulator<T>(gradient));
    }
  }
}

}  // namespace fivefold::kernels::reference
