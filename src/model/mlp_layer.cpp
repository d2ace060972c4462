#include "model/mlp_layer.hpp"

namespace fivefold::model {

using kernels::Context;
using kernels::Write;

MlpLayer::MlpLayer(const spec::ModelSpec& model, const ParameterSet& set,
                   const std::string& prefix, uint64_t seed)
    : model_(model),
      down_(weight_of(set, prefix + "down_proj.weight")),
      down_bias_(weight_of(set, prefix + "down_proj.bias")),
      residual_random_(seed, stream_of(prefix + "residual_dropout")) {
  if (model.mlp == spec::Mlp::swiglu) {
    in_ = weight_of(set, prefix + "gate_proj.weight", prefix + "up_proj.weight");
    in_bias_ = weight_of(set, prefix + "gate_proj.bias", prefix + "up_proj.bias");
    CHECK(in_.value.size[0] == 2 * model.hidden_dim, "gate and up are not neighbours");
  } else {
    in_ = weight_of(set, prefix + "up_proj.weight");
    in_bias_ = weight_of(set, prefix + "up_proj.bias");
  }
}

void MlpLayer::restore_hidden(Context& ctx, MlpTape& tape) const {
  const int64_t f = model_.hidden_dim;
  const View pre = tape.pre;
  tape.hidden = Tensor(ctx.memory, Category::activation, pre.dtype, {pre.size[0], f});
  if (model_.mlp == spec::Mlp::swiglu) {
    kernels::swiglu_forward(ctx, pre.slice(1, 0, f), pre.slice(1, f, 2 * f), tape.hidden);
  } else {
    kernels::gelu_forward(ctx, pre, tape.hidden);
  }
}

void MlpLayer::forward_hidden(Context& ctx, ConstView h, MlpTape& tape) const {
  tape.pre = Tensor(ctx.memory, Category::activation, h.dtype, {h.size[0], in_.value.size[0]});
  kernels::linear_forward(ctx, h, in_.value, in_bias_.value, tape.pre);
  restore_hidden(ctx, tape);
}

void MlpLayer::forward_output(Context& ctx, const Input& input, View y,
                              const MlpTape& tape) const {
  if (input.training && model_.residual_dropout > 0) {
    Tensor branch(ctx.memory, Category::activation, y.dtype, {input.rows(), model_.dim});
    kernels::linear_forward(ctx, tape.hidden, down_.value, down_bias_.value, branch);
    kernels::dropout(ctx, branch, model_.residual_dropout, residual_random_, input.token_index);
    kernels::convert(ctx, branch, y, Write::accumulate);
  } else {
    kernels::linear_forward(ctx, tape.hidden, down_.value, down_bias_.value, y, Write::accumulate);
  }
}

void MlpLayer::backward_input(Context& ctx, const Input& input, ConstView dy, MlpTape& tape,
                              MlpWork& work, View dh) const {
  const int64_t rows = input.rows(), f = model_.hidden_dim;
  if (input.training && model_.residual_dropout > 0) {
    work.dy = Tensor(ctx.memory, Category::activation, dy.dtype, {rows, model_.dim});
    kernels::convert(ctx, dy, work.dy);
    kernels::dropout(ctx, work.dy, model_.residual_dropout, residual_random_, input.token_index);
    dy = work.dy;
  }
  Tensor dhidden(ctx.memory, Category::activation, dy.dtype, {rows, f});
  kernels::linear_backward_input(ctx, dy, down_.value, dhidden);
  // In place: nobody reads `pre` after this.
  work.dpre = std::move(tape.pre);
  const View d = work.dpre;
  if (model_.mlp == spec::Mlp::swiglu) {
    kernels::swiglu_backward(ctx, dhidden, d.slice(1, 0, f), d.slice(1, f, 2 * f),
                             d.slice(1, 0, f), d.slice(1, f, 2 * f));
  } else {
    kernels::gelu_backward(ctx, dhidden, d, d);
  }
  dhidden = Tensor();
  kernels::linear_backward_input(ctx, work.dpre, in_.value, dh);
}

void MlpLayer::backward_weight(Context& ctx, ConstView dy, ConstView h, const MlpTape& tape,
                               const MlpWork& work) const {
  if (work.dy) dy = work.dy;
  kernels::linear_backward_weight(ctx, dy, tape.hidden, down_.gradient, down_bias_.gradient);
  kernels::linear_backward_weight(ctx, work.dpre, h, in_.gradient, in_bias_.gradient);
}

}  // namespace fivefold::model
