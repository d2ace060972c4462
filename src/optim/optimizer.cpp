#include "optim/optimizer.hpp"

#include <cmath>

#include "kernels/ops.hpp"

namespace fivefold::optim {
namespace {

// The elements of a flat state tensor that belong to `p`, in its shape.
View part(const Tensor& flat, const Parameter& p, const View& shaped) {
  View v = shaped;
  v.dtype = flat.dtype();
  v.data = static_cast<std::byte*>(flat.view().data) + p.offset * int64_t(size_of(flat.dtype()));
  return v;
}

}  // namespace

AdamWOptimizer::AdamWOptimizer(kernels::Context& ctx, const ParameterSet& parameters,
                               const spec::OptimizerSpec& spec)
    : parameters_(parameters), spec_(spec) {
  CHECK(spec.name == "AdamW", "optimizer.name = {}", spec.name);
  CHECK(parameters.gradients().data != nullptr || parameters.count() == 0,
        "an optimizer over parameters without gradients");
  for (const Parameter& p : parameters.all()) {
    if (runs_.empty() || runs_.back().decays != p.spec.weight_decay) {
      runs_.push_back({p.offset, p.offset, p.spec.weight_decay});
    }
    runs_.back().end = p.offset + p.count;
  }
  const DType dtype = accumulator_of(parameters.dtype());
  m_ = Tensor(ctx.memory, Category::optimizer, dtype, {parameters.count()});
  v_ = Tensor(ctx.memory, Category::optimizer, dtype, {parameters.count()});
  m_.zero();
  v_.zero();
  if (dtype != parameters.dtype()) {
    master_ = Tensor(ctx.memory, Category::optimizer, dtype, {parameters.count()});
    sync_master(ctx);
  }
}

void AdamWOptimizer::step(kernels::Context& ctx, double lr, int64_t step, double grad_scale) {
  CHECK(step >= 1, "step {}", step);
  const View weights = this->weights();
  for (const Run& run : runs_) {
    const kernels::AdamW args{.lr = lr,
                              .beta1 = spec_.beta1,
                              .beta2 = spec_.beta2,
                              .eps = spec_.eps,
                              .weight_decay = run.decays ? spec_.weight_decay : 0,
                              .step = step,
                              .grad_scale = grad_scale};
    const View low = master_ ? parameters_.values().slice(0, run.begin, run.end) : View();
    kernels::adamw(ctx, args, weights.slice(0, run.begin, run.end),
                   parameters_.gradients().slice(0, run.begin, run.end),
                   m_.view().slice(0, run.begin, run.end), v_.view().slice(0, run.begin, run.end),
                   low);
  }
}

double AdamWOptimizer::gradient_norm(kernels::Context& ctx) const {
  return std::sqrt(kernels::sum_of_squares(ctx, parameters_.gradients()));
}

void AdamWOptimizer::sync_master(kernels::Context& ctx) {
  if (master_) kernels::convert(ctx, parameters_.values(), master_);
}

void AdamWOptimizer::round_master(kernels::Context& ctx) {
  if (master_) kernels::convert(ctx, master_, parameters_.values());
}

std::vector<NamedView> AdamWOptimizer::state() const {
  std::vector<NamedView> state;
  for (const Parameter& p : parameters_.all()) {
    const View shaped = parameters_.value(p);
    state.push_back({p.spec.name + ".m", part(m_, p, shaped)});
    state.push_back({p.spec.name + ".v", part(v_, p, shaped)});
    if (master_) state.push_back({p.spec.name + ".master", part(master_, p, shaped)});
  }
  return state;
}

Result<double> clip_factor(double norm, double max_norm) {
  if (!std::isfinite(norm)) {
    return fail(Error::Code::not_finite,
                "the gradients' norm is {}; debug.detect_anomaly = true "
                "names the first layer with a NaN or Inf",
                norm);
  }
  return max_norm > 0 && norm > max_norm ? max_norm / norm : 1.0;
}

}  // namespace fivefold::optim
