#pragma once
// The one seam through which every large matrix product goes, whichever engine multiplies.

#include "kernels/ops.hpp"

namespace fivefold::kernels {

// op(M) is M, or its transpose. Rows may be strided.
struct MatmulOperand {
  ConstView view;
  bool transposed = false;
};

struct MatmulExtras {
  ConstView bias = {};  // [N], dtype of a: added to every row of c
  View row_sums = {};   // [M], dtype of c: += the sums over k of op(a), read while it is packed
  Write write = Write::overwrite;
};

// c[M,N] (=|+=) op(a)[M,K] op(b)[K,N] + bias.
//
// DTypes   a and b both f32, both bf16 or both f64; c their accumulator, or bf16 like them.
//          bf16 is widened, computed in float32 and rounded once.
// Order    of the packed engine: fixed by K alone; the same bits at any number of threads.
void matmul(Context& ctx, MatmulOperand a, MatmulOperand b, View c, const MatmulExtras& extras);

// What `automatic` means for the instruction set at hand.
MatmulEngine engine_of(const Context& ctx);

// The kernels that OpenBLAS chose for this machine ("Zen", "SkylakeX"): benches print it, because
// an environment variable can force an old one.
std::string_view openblas_core();

namespace detail {
// Shapes as the engines see them, checked by matmul.
struct MatmulProblem {
  int64_t m = 0, n = 0, k = 0;
  MatmulOperand a, b;
  View c;
  MatmulExtras extras;
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;
};
void matmul_openblas(Context& ctx, const MatmulProblem& problem);
void matmul_packed(Context& ctx, const MatmulProblem& problem);
// y = x w^T for a handful of rows x, straight from memory; false if it is not such a product.
bool matmul_few_rows(Context& ctx, const MatmulProblem& problem);
}  // namespace detail

}  // namespace fivefold::kernels
