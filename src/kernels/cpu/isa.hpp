#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/context.hpp"
#include "tensor/dtype.hpp"

// PICK(ctx, f) is the f of the instruction set that `ctx` asks for.
#if defined(__x86_64__)
#define PICK(ctx, function)                                                          \
  ((ctx).isa == ::fivefold::kernels::Isa::avx512                                     \
       ? &::fivefold::kernels::avx512::function                                      \
       : (ctx).isa == ::fivefold::kernels::Isa::avx2 ? &::fivefold::kernels::avx2::function \
                                                     : &::fivefold::kernels::portable::function)
#else
#define PICK(ctx, function) (&::fivefold::kernels::portable::function)
#endif
