#pragma once

#include "kernels/ops.hpp"
#include "model/weight.hpp"
#include "spec/model.hpp"

namespace fivefold::model {

// Row statistics that the backward pass needs.
struct NormTape {
  Tensor mean, rstd;
};

// RMSNorm or LayerNorm over the last dim.
class NormLayer {
 public:
  NormLayer(spec::Norm kind, double eps, Weight scale, Weight shift);

  // y = norm(x). Called again with the same x it gives the same bits (recomputation).
  void forward(kernels::Context&, ConstView x, View y, NormTape& tape) const;
  void backward_input(kernels::Context&, ConstView dy, ConstView x, const NormTape& tape, View dx,
                      kernels::Write write) const;
  void backward_weight(kernels::Context&, ConstView dy, ConstView x, const NormTape& tape) const;

 private:
  spec::Norm kind_;
  double eps_;
  Weight scale_, shift_;
};

}  // namespace fivefold::model
