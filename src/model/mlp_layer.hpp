#pragma once

#include "model/input.hpp"
#include "model/weight.hpp"
#include "kernels/ops.hpp"

namespace fivefold::model {

struct MlpTape {
  Tensor pre;     // [N, 2 F] gate beside up (SwiGLU) or [N, F] (GELU), before the activation
  Tensor hidden;  // [N, F], after it; cheap to recompute from `pre`
};

struct MlpWork {
  Tensor dpre;
  Tensor dy;  // after the residual dropout's mask; empty without
};

// SwiGLU (gate, up, down) or GELU (up, down), on normalised input.
class MlpLayer {
 public:
  MlpLayer(const spec::ModelSpec& model, const ParameterSet& set, const std::string& prefix,
           uint64_t seed);

  // The forward pass in two halves: h to `pre` and `hidden`, then y += their output. Recomputation
  // stops after the first.
  void forward_hidden(kernels::Context&, ConstView h, MlpTape&) const;
  void forward_output(kernels::Context&, const Input&, View y, const MlpTape&) const;
  // `hidden` again from `pre`, the same bits.
  void restore_hidden(kernels::Context&, MlpTape&) const;
  // dh = the input's gradient. Takes `pre` out of the tape and leaves its gradient in `work`.
  void backward_input(kernels::Context&, const Input&, ConstView dy, MlpTape&, MlpWork&,
                      View dh) const;
  void backward_weight(kernels::Context&, ConstView dy, ConstView h, const MlpTape&,
                       const MlpWork&) const;

 private:
  const spec::ModelSpec& model_;
  Weight in_, in_bias_, down_, down_bias_;
  Random residual_random_;
};

}  // namespace fivefold::model
