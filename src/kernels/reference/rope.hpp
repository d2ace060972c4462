#pragma once
// Rotates the pairs (i, i + D/2) of every head of the rows [begin, end).

#include "tensor/dtype.hpp"

namespace fivefold::kernels::reference {

template <class T>
struct Heads {
  T* data;
  int64_t heads, width, row_stride, head_stride;
};

// `sign` is 1 to rotate forward and -1 to rotate back.
template <class T>
void rope(Heads<T> x, const int32_t* positions, const double* table, double sign, int64_t begin,
          int64_t end) {
  const int64_t half = x.width / 2;
  for (int64_t n = begin; n < end; ++n) {
    const double* angles = table + int64_t{positions[n]} * half * 2;
    for (int64_t h = 0; h < x.heads; ++h) {
      T* row = x.data + n * x.row_stride + h * x.head_stride;
      for (int64_t i = 0; i < half; ++i) {
        const double cosine = angles[2 * i], sine = sign * angles[2 * i + 1];
        const double a = load(row[i]), b = load(row[i + half]);
        store(row[i], Accumulator<T>(a * cosine - b * sine));
        store(row[i + half], Accumulator<T>(b * cosine + a * sine));
      }
    }
  }
}

}  // namespace fivefold::kernels::reference
