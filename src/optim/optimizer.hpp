#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "kernels/context.hpp"
#include "parameter/parameter_set.hpp"
#include "spec/run.hpp"

namespace fivefold::optim {

// A tensor of the optimizer's state under the name that a checkpoint gives it.
struct NamedView {
  std::string name;
  View view;
};

// AdamW with decoupled decay over all parameters of a rank. Keeps m and v in the accumulator type,
// and float32 master weights when the parameters are bf16; all in Category::optimizer.
//
// Cost     8 bytes a float32 parameter, 12 a bf16 one, 16 a float64 one.
// Source   Loshchilov & Hutter, "Decoupled weight decay regularization", 2019.
class AdamWOptimizer {
 public:
  // State zero, master weights from the values. The set outlives the optimizer and has gradients.
  AdamWOptimizer(kernels::Context& ctx, const ParameterSet& parameters,
                 const spec::OptimizerSpec& spec);

  // One update, in place. Parameters with ParameterSpec::weight_decay decay, the others do not.
  // `step` counts from 1; gradients are multiplied by `grad_scale` as they are read.
  void step(kernels::Context& ctx, double lr, int64_t step, double grad_scale = 1);

  // L2 norm of all gradients, in float64. NaN or Inf when one of them is.
  double gradient_norm(kernels::Context& ctx) const;

  // What the update reads and writes: the master weights, or the values where there are none.
  View weights() const { return master_ ? master_.view() : parameters_.values(); }
  // After the values came from elsewhere (an import, a broadcast). Nothing to do without masters.
  void sync_master(kernels::Context& ctx);
  // The other way, after the masters came from elsewhere (a checkpoint).
  void round_master(kernels::Context& ctx);

  View m() const { return m_.view(); }  // [count]
  View v() const { return v_.view(); }
  View master() const { return master_ ? master_.view() : View(); }  // empty without

  // "<parameter>.m", "<parameter>.v" and, with masters, "<parameter>.master", each in its
  // parameter's shape, in the parameters' order.
  std::vector<NamedView> state() const;

 private:
  // Neighbours that decay alike are swept by one call.
  struct Run {
    int64_t begin = 0, end = 0;
    bool decays = false;
  };

  const ParameterSet& parameters_;
  spec::OptimizerSpec spec_;
  std::vector<Run> runs_;
  Tensor m_, v_, master_;
};

// What to multiply the gradients by so that their norm is at most max_norm: 1 when it is already,
// or when max_norm is 0 (no clipping).
//
// Errors   not_finite, for a NaN or infinite norm, clipping or not.
Result<double> clip_factor(double norm, double max_norm);

}  // namespace fivefold::optim
