#pragma once
// RMSNorm and LayerNorm over rows [begin, end), as the formulas read; sums in float64.
// Without a mean (nullptr) the statistics are RMSNorm's.

#include <cmath>
#include <vector>

#include "kernels/rows.hpp"
#include "tensor/dtype.hpp"

namespace fivefold::kernels::reference {

template <class T>
void norm_forward(Rows<const T> x, const T* w, const T* b, double eps, Rows<T> y,
                  Accumulator<T>* mean, Accumulator<T>* rstd, int64_t begin, int64_t end) {
  const int64_t columns = x.columns;
  for (int64_t n = begin; n < end; ++n) {
    double sum = 0, squares = 0;
    if (mean != nullptr) {
      for (int64_t c = 0; c < columns; ++c) sum += load(x[n][c]);
      mean[n] = Accumulator<T>(sum / double(columns));
    }
    const double center = mean != nullptr ? sum / double(columns) : 0;
    for (int64_t c = 0; c < columns; ++c) {
      squares += (load(x[n][c]) - center) * (load(x[n][c]) - center);
    }
    const double scale = 1 / std::sqrt(squares / double(columns) + eps);
    rstd[n] = Accumulator<T>(scale);
    for (int64_t c = 0; c < columns; ++c) {
      const double shift = b != nullptr ? load(b[c]) : 0;
      store(y[n][c], Accumulator<T>((load(x[n][c]) - center) * scale * load(w[c]) + shift));
    }
  }
}

template <class T>
void norm_backward_input(Rows<const T> dy, Rows<const T> x, const T* w, const Accumulator<T>* mean,
                         const Accumulator<T>* rstd, Rows<T> dx, bool accumulate, int64_t begin,
                         int64_t end) {
  const int64_t columns = x.columns;
  for (int64_t n = begin; n < end; ++n) {
    const double center = mean != nullptr ? mean[n] : 0;
    double sum = 0, dot = 0;  // of the gradient of the normalised row, and of it times the row
    for (int64_t c = 0; c < columns; ++c) {
      const double gradient = double(load(dy[n][c])) * load(w[c]);
      sum += gradient;
      dot += gradient * (load(x[n][c]) - center) * rstd[n];
    }
    const double shift = mean != nullptr ? sum / double(columns) : 0;
    for (int64_t c = 0; c < columns; ++c) {
      const double gradient = double(load(dy[n][c])) * load(w[c]);
      const double normal = (load(x[n][c]) - center) * rstd[n];
      const double before = accumulate ? load(dx[n][c]) : 0;
      store(dx[n][c],
            Accumulator<T>(before + rstd[n] * (gradient - shift - normal * dot / double(columns))));
    }
  }
}

// Overwrites dw[C] and, when not null, db[C] with the sums over the rows [begin, end).
template <class T>
void norm_backward_weight(Rows<const T> dy, Rows<const T> x, const Accumulator<T>* mean,
                          const Accumulator<T>* rstd, Accumulator<T>* dw, Accumulator<T>* db,
                          int64_t begin, int64_t end) {
  for (int64_t c = 0; c < x.columns; ++c) {
    double weight = 0, bias = 0;
    for (int64_t n = begin; n < end; ++n) {
      const double center = mean != nullptr ? mean[n] : 0;
      weight += load(dy[n][c]) * (load(x[n][c]) - center) * rstd[n];
      bias += load(dy[n][c]);
    }
    dw[c] = Accumulator<T>(weight);
    if (db != nullptr) db[c] = Accumulator<T>(bias);
  }
}

}  // namespace fivefold::kernels::reference
