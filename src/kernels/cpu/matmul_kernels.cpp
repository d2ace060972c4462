#include "kernels/cpu/matmul_kernels.hpp"

#define KERNEL_FILE "kernels/cpu/matmul_kernels.inl"
#include "kernels/cpu/each_isa.inl"

namespace fivefold::kernels {

template <>
MatmulKernels<float> matmul_kernels(const Context& ctx) {
  return PICK(ctx, kernels_of<float>)();
}
template <>
MatmulKernels<double> matmul_kernels(const Context& ctx) {
  return PICK(ctx, kernels_of<double>)();
}
template <>
MatmulKernels<bf16> matmul_kernels(const Context& ctx) {
  return PICK(ctx, kernels_of<bf16>)();
}

}  // namespace fivefold::kernels
