#include "tensor/tensor.hpp"

#include <cstring>

namespace fivefold {

Tensor::Tensor(Memory& memory, Category category, DType dtype, const Shape& shape)
    : memory_(&memory), category_(category), dtype_(dtype), shape_(shape) {
  data_ = memory.allocate(category, bytes());
}

Tensor::Tensor(Tensor&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      category_(other.category_),
      dtype_(other.dtype_),
      shape_(std::exchange(other.shape_, {})) {}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(data_, other.data_);
  std::swap(category_, other.category_);
  std::swap(dtype_, other.dtype_);
  std::swap(shape_, other.shape_);
  if (this != &other) Tensor expired(std::move(other));
  return *this;
}

Tensor::~Tensor() {
  if (memory_ != nullptr) memory_->release(category_, data_, bytes());
}

void Tensor::zero() {
  if (bytes() > 0) std::memset(data_, 0, bytes());
}

}  // namespace fivefold
