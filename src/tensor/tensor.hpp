#pragma once

#include <utility>

#include "tensor/memory.hpp"
#include "tensor/view.hpp"

namespace fivefold {

// Owns contiguous elements in one memory category; returns them to its Memory when destroyed.
class Tensor {
 public:
  Tensor() = default;
  // Contents unspecified.
  Tensor(Memory& memory, Category category, DType dtype, const Shape& shape);
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept;
  ~Tensor();

  explicit operator bool() const { return memory_ != nullptr; }
  View view() const { return {data_, dtype_, shape_}; }
  operator View() const { return view(); }            // NOLINT(google-explicit-constructor)
  operator ConstView() const { return {data_, dtype_, shape_}; }  // NOLINT
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  int64_t count() const { return shape_.count(); }
  size_t bytes() const { return size_t(shape_.count()) * size_of(dtype_); }
  void zero();
  // All elements as T. Requires the dtype to be T's.
  template <class T>
  std::span<T> flat() const {
    return view().flat<T>();
  }

 private:
  Memory* memory_ = nullptr;
  void* data_ = nullptr;
  Category category_ = Category::workspace;
  DType dtype_ = DType::f32;
  Shape shape_;
};

}  // namespace fivefold
