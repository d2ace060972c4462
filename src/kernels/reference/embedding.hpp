#pragma once
// Embedding rows, and the scatter of their gradients, over the columns [begin, end).

#include "kernels/rows.hpp"
#include "tensor/dtype.hpp"

namespace fivefold::kernels::reference {

// Row n of y becomes (or has added) row ids[n] of the table, for n in [begin, end).
template <class T>
void embedding_forward(const int32_t* ids, Rows<const T> table, Rows<T> y, bool accumulate,
                       int64_t begin, int64_t end) {
  for (int64_t n = begin; n < end; ++n) {
    const T* from = table[ids[n]];
    for (int64_t c = 0; c < y.columns; ++c) {
      const auto before = accumulate ? load(y[n][c]) : 0;
      store(y[n][c], before + load(from[c]));
    }
  }
}

// All rows in the order of n, columns [begin, end).
template <class T>
void embedding_backward(const int32_t* ids, Rows<const T> dy, Rows<Accumulator<T>> dtable,
                        int64_t begin, int64_t end) {
  for (int64_t n = 0; n < dy.count; ++n) {
    for (int64_t c = begin; c < end; ++c) dtable[ids[n]][c] += load(dy[n][c]);
  }
}

}  // namespace fivefold::kernels::reference
