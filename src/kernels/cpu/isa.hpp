#pragma once

#if defined(__x86_64__)
// g++ 12 warns of the intentionally undefined operands inside its own header (GCC PR 105593).
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
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
