// Includes KERNEL_FILE once for each instruction set, in a namespace of its own, compiled for it:
//   #define KERNEL_FILE "kernels/cpu/norm.inl"
//   #include "kernels/cpu/each_isa.inl"
// gives kernels::portable::f, kernels::avx2::f, kernels::avx512::f, to be chosen by Context::isa
// (pick in isa.hpp). The pragmas cover only our code: nothing of the standard library is compiled
// for an instruction set that the machine may lack. KERNEL_FILE must include nothing but simd.inl.

#include "kernels/cpu/isa.hpp"

namespace fivefold::kernels::portable {
#define FIVEFOLD_ISA 0
#include "kernels/cpu/simd.inl"
#include KERNEL_FILE
#undef FIVEFOLD_ISA
}  // namespace fivefold::kernels::portable

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif
namespace fivefold::kernels::avx2 {
#define FIVEFOLD_ISA 2
#include "kernels/cpu/simd.inl"
#include KERNEL_FILE
#undef FIVEFOLD_ISA
}  // namespace fivefold::kernels::avx2
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#if defined(__clang__)
#pragma clang attribute push(                                                      \
    __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl"))),   \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif
namespace fivefold::kernels::avx512 {
#define FIVEFOLD_ISA 512
#include "kernels/cpu/simd.inl"
#include KERNEL_FILE
#undef FIVEFOLD_ISA
}  // namespace fivefold::kernels::avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif  // __x86_64__
#undef KERNEL_FILE
