#pragma once
// One table of cases per op, three uses: the fast kernels against the reference ones, analytic
// gradients against float64 finite differences, and timing (bench/kernels.cpp).

#include <functional>
#include <string>
#include <vector>

#include "kernels/ops.hpp"
#include "tensor/tensor.hpp"

namespace fivefold::kernels::cases {

struct Operand {
  enum class Kind : uint8_t {
    normal,      // T, standard normal times `scale`: differentiated
    fixed,       // as normal, but not differentiated
    indices,     // i32, uniform in [0, limit), or as `values` says
    statistics,  // A, an output that backward needs (rstd, lse): compared, not differentiated
    output,      // T
  };
  std::string name;
  Kind kind = Kind::normal;
  Shape shape;
  double scale = 1;
  int64_t limit = 0;
  std::vector<int32_t> values = {};  // for indices: the exact contents, when not empty
};

// Tensors by position: inputs in the order of Case::inputs, outputs in that of Case::outputs.
using Tensors = std::vector<Tensor>;

struct Case {
  std::string name;  // "rmsnorm/33x17"
  std::vector<Operand> inputs, outputs;
  std::function<void(Context&, Tensors& in, Tensors& out)> forward;
  // Given dout (T, one for each output of kind output, in order), fills din: one tensor for each
  // input, T for activations and A for weights as the op says; only `normal` inputs are looked at.
  // Those of dtype A arrive zeroed and are added to.
  std::function<void(Context&, Tensors& in, Tensors& out, Tensors& dout, Tensors& din)> backward;
  // Which inputs' gradients are of dtype A (weights).
  std::vector<bool> weight = {};
  double flops = 0, bytes = 0;  // of a forward, in float32, for the timing table; 0: not timed
  bool gradient = true;         // small enough for finite differences
  bool any_threads = false;     // promises the same bits at any number of threads
};

// One function an op family, each in its own file here.
std::vector<Case> linear_cases();
std::vector<Case> embedding_cases();
std::vector<Case> norm_cases();
std::vector<Case> rope_cases();
std::vector<Case> attention_cases();
std::vector<Case> activation_cases();
std::vector<Case> cross_entropy_cases();

}  // namespace fivefold::kernels::cases
