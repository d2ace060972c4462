#pragma once
// Borrowed, strided, typed windows onto tensors. The last dim is contiguous, always.

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>

#include "base/check.hpp"
#include "tensor/dtype.hpp"

namespace fivefold {

// Sizes of up to four dims, outer to inner.
class Shape {
 public:
  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<int64_t> sizes) {
    for (const int64_t size : sizes) size_[size_t(rank_++)] = size;
  }
  constexpr int rank() const { return rank_; }
  constexpr int64_t operator[](int dim) const { return size_[size_t(dim)]; }
  constexpr int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < rank_; ++d) n *= size_[size_t(d)];
    return n;
  }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<int64_t, 4> size_{};
  int rank_ = 0;
};

// `Pointer` is void* or const void*. Strides count elements.
template <class Pointer>
struct BasicView {
  Pointer data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  std::array<int64_t, 4> size{}, stride{};

  BasicView() = default;
  // Contiguous.
  BasicView(Pointer where, DType type, const Shape& shape) : data(where), dtype(type) {
    rank = shape.rank();
    int64_t step = 1;
    for (int d = rank - 1; d >= 0; --d) {
      size[size_t(d)] = shape[d];
      stride[size_t(d)] = step;
      step *= shape[d];
    }
  }
  // A writable view is also a readable one.
  template <class Other>
    requires(std::is_const_v<std::remove_pointer_t<Pointer>> && std::same_as<Other, void*>)
  BasicView(const BasicView<Other>& v)  // NOLINT(google-explicit-constructor)
      : data(v.data), dtype(v.dtype), rank(v.rank), size(v.size), stride(v.stride) {}

  explicit operator bool() const { return data != nullptr; }

  // Elements as T. Requires the dtype to be T's.
  template <class T>
  auto* as() const {
    CHECK(DTypeOf<T>::value == dtype, "a {} view read as {}", name_of(dtype),
          name_of(DTypeOf<T>::value));
    using Element = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const T, T>;
    return static_cast<Element*>(data);
  }
  // All elements. Requires contiguous.
  template <class T>
  auto flat() const {
    CHECK(contiguous(), "flat() of a strided view");
    auto* first = as<T>();
    return std::span<std::remove_pointer_t<decltype(first)>>(first, size_t(count()));
  }

  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= size[size_t(d)];
    return n;
  }
  bool contiguous() const {
    int64_t step = 1;
    for (int d = rank - 1; d >= 0; --d) {
      if (size[size_t(d)] != 1 && stride[size_t(d)] != step) return false;
      step *= size[size_t(d)];
    }
    return true;
  }
  // The innermost size, and how many rows of it there are.
  int64_t columns() const { return rank == 0 ? 1 : size[size_t(rank - 1)]; }
  int64_t rows() const { return columns() == 0 ? 0 : count() / columns(); }
  // Elements from one row to the next, when all outer dims can be walked as one. For a single
  // row any value would do; it is columns().
  int64_t row_stride() const {
    if (rows() <= 1) return columns();
    int inner = rank - 2;
    while (inner > 0 && size[size_t(inner)] == 1) --inner;
    const int64_t step = stride[size_t(inner)];
    for (int d = inner - 1; d >= 0; --d) {
      CHECK(size[size_t(d)] == 1 || stride[size_t(d)] == stride[size_t(d + 1)] * size[size_t(d + 1)],
            "rows are not evenly spaced");
    }
    return step;
  }

  // The same elements under another shape. Requires contiguous and an equal count.
  BasicView reshape(const Shape& shape) const {
    CHECK(contiguous() && shape.count() == count(), "reshape of {} elements to {}", count(),
          shape.count());
    return BasicView(data, dtype, shape);
  }
  // Elements [from, to) of `dim`.
  BasicView slice(int dim, int64_t from, int64_t to) const {
    CHECK(dim < rank && 0 <= from && from <= to && to <= size[size_t(dim)],
          "slice [{}, {}) of a dim of {}", from, to, size[size_t(dim)]);
    BasicView v = *this;
    using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const std::byte,
                                    std::byte>;
    v.data = static_cast<Byte*>(data) + from * stride[size_t(dim)] * int64_t(size_of(dtype));
    v.size[size_t(dim)] = to - from;
    return v;
  }
  // The last dim of n elements as [parts, n / parts].
  BasicView split_last(int64_t parts) const {
    CHECK(rank < 4 && columns() % parts == 0, "{} columns do not split in {}", columns(), parts);
    BasicView v = *this;
    const auto last = size_t(rank - 1);
    v.size[last + 1] = size[last] / parts;
    v.stride[last + 1] = 1;
    v.size[last] = parts;
    v.stride[last] = v.size[last + 1];
    ++v.rank;
    return v;
  }
  // The first dim of n elements as [parts, n / parts].
  BasicView split_first(int64_t parts) const {
    CHECK(rank < 4 && parts > 0 && size[0] % parts == 0, "{} rows do not split in {}", size[0],
          parts);
    BasicView v = *this;
    for (int d = rank; d > 0; --d) {
      v.size[size_t(d)] = size[size_t(d - 1)];
      v.stride[size_t(d)] = stride[size_t(d - 1)];
    }
    v.size[1] = size[0] / parts;
    v.size[0] = parts;
    v.stride[0] = v.size[1] * v.stride[1];
    ++v.rank;
    return v;
  }
};

using View = BasicView<void*>;
using ConstView = BasicView<const void*>;

}  // namespace fivefold
