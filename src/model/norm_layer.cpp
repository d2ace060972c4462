#include "model/norm_layer.hpp"

namespace fivefold::model {

NormLayer::NormLayer(spec::Norm kind, double eps, Weight scale, Weight shift)
    : kind_(kind), eps_(eps), scale_(scale), shift_(shift) {}

void NormLayer::forward(kernels::Context& ctx, ConstView x, View y, NormTape& tape) const {
  const DType statistics = accumulator_of(x.dtype);
  tape.rstd = Tensor(ctx.memory, Category::activation, statistics, {x.rows()});
  if (kind_ == spec::Norm::rmsnorm) {
    kernels::rmsnorm_forward(ctx, x, scale_.value, eps_, y, tape.rstd);
  } else {
    tape.mean = Tensor(ctx.memory, Category::activation, statistics, {x.rows()});
    kernels::layernorm_forward(ctx, x, scale_.value, shift_.value, eps_, y, tape.mean, tape.rstd);
  }
}

void NormLayer::backward_input(kernels::Context& ctx, ConstView dy, ConstView x,
                               const NormTape& tape, View dx, kernels::Write write) const {
  if (kind_ == spec::Norm::rmsnorm) {
    kernels::rmsnorm_backward_input(ctx, dy, x, scale_.value, tape.rstd, dx, write);
  } else {
    kernels::layernorm_backward_input(ctx, dy, x, scale_.value, tape.mean, tape.rstd, dx, write);
  }
}

void NormLayer::backward_weight(kernels::Context& ctx, ConstView dy, ConstView x,
                                const NormTape& tape) const {
  if (kind_ == spec::Norm::rmsnorm) {
    kernels::rmsnorm_backward_weight(ctx, dy, x, tape.rstd, scale_.gradient);
  } else {
    kernels::layernorm_backward_weight(ctx, dy, x, tape.mean, tape.rstd, scale_.gradient,
                                       shift_.gradient);
  }
}

}  // namespace fivefold::model
