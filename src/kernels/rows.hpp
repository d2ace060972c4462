#pragma once
// A view seen as rows of its contiguous last dim: what every row-wise kernel is handed.

#include <cstdint>

#include "base/check.hpp"
#include "tensor/view.hpp"

namespace fivefold::kernels {

// T is const for a ConstView. Two levels of strides, so that the heads of a fused [N, 3, H, D]
// projection can be walked in place.
template <class T>
struct Rows {
  T* data = nullptr;
  int64_t count = 0, columns = 0;
  int64_t inner = 1;  // rows that are evenly spaced, by inner_stride
  int64_t inner_stride = 0, outer_stride = 0;

  T* operator[](int64_t n) const {
    if (inner == count) return data + n * inner_stride;
    return data + n / inner * outer_stride + n % inner * inner_stride;
  }
};

// Requires the outer dims to be walkable with two strides.
template <class T, class Pointer>
Rows<T> rows_of(const BasicView<Pointer>& view) {
  Rows<T> rows;
  rows.data = view.template as<std::remove_const_t<T>>();
  rows.columns = view.columns();
  rows.count = view.rows();
  rows.inner_stride = view.columns();
  int levels = 0;
  int64_t outer = 1;  // rows of the second level
  for (int d = view.rank - 2; d >= 0; --d) {
    const int64_t size = view.size[size_t(d)], stride = view.stride[size_t(d)];
    if (size == 1) continue;
    if (levels == 0) {
      rows.inner = size, rows.inner_stride = stride, levels = 1;
    } else if (levels == 1 && stride == rows.inner_stride * rows.inner) {
      rows.inner *= size;
    } else if (levels == 1) {
      outer = size, rows.outer_stride = stride, levels = 2;
    } else {
      CHECK(stride == rows.outer_stride * outer, "rows need more than two strides");
      outer *= size;
    }
  }
  if (rows.count == 0) rows.inner = 0;
  return rows;
}

}  // namespace fivefold::kernels
