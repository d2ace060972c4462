#include "model/attention_layer.hpp"

#include <cmath>

namespace fivefold::model {

using kernels::Context;
using kernels::Write;

AttentionLayer::AttentionLayer(const spec::ModelSpec& model, const ParameterSet& set,
                               const std::string& prefix, ConstView rope_table, uint64_t seed)
    : model_(model),
      qkv_(weight_of(set, prefix + "q_proj.weight", prefix + "v_proj.weight")),
      qkv_bias_(weight_of(set, prefix + "q_proj.bias", prefix + "v_proj.bias")),
      out_(weight_of(set, prefix + "o_proj.weight")),
      out_bias_(weight_of(set, prefix + "o_proj.bias")),
      rope_table_(rope_table),
      attention_random_(seed, stream_of(prefix + "attention_dropout")),
      residual_random_(seed, stream_of(prefix + "residual_dropout")) {
  CHECK(qkv_.value.size[0] == model.q_dim() + 2 * model.kv_dim(), "q, k, v are not neighbours");
  if (model.qk_norm) {
    q_norm_.emplace(spec::Norm::rmsnorm, model.norm_eps, weight_of(set, prefix + "q_norm.weight"),
                    Weight{});
    k_norm_.emplace(spec::Norm::rmsnorm, model.norm_eps, weight_of(set, prefix + "k_norm.weight"),
                    Weight{});
  }
}

View AttentionLayer::q_of(View qkv) const {
  return qkv.slice(1, 0, model_.q_dim()).split_last(model_.num_heads);
}
View AttentionLayer::k_of(View qkv) const {
  return qkv.slice(1, model_.q_dim(), model_.q_dim() + model_.kv_dim())
      .split_last(model_.num_kv_heads);
}
View AttentionLayer::v_of(View qkv) const {
  return qkv.slice(1, model_.q_dim() + model_.kv_dim(), model_.q_dim() + 2 * model_.kv_dim())
      .split_last(model_.num_kv_heads);
}

kernels::AttentionShape AttentionLayer::shape() const {
  return {.q_offset = 0,
          .causal = true,
          .window = model_.sliding_window,
          .scale = 1 / std::sqrt(double(model_.head_dim))};
}

std::optional<kernels::AttentionDropout> AttentionLayer::dropout(const Input& input) const {
  if (!input.training || model_.attention_dropout == 0) return std::nullopt;
  return kernels::AttentionDropout{
      .rate = model_.attention_dropout,
      .random = attention_random_,
      .token_index = input.token_index.reshape({input.sequences, input.seq_len})};
}

// QK-norm: q and k of every head, from `qkv` into `qk`.
void AttentionLayer::normalise_heads(Context& ctx, AttentionTape& tape) const {
  const int64_t rows = tape.qkv.shape()[0];
  const int64_t heads = model_.num_heads + model_.num_kv_heads;
  tape.qk = Tensor(ctx.memory, Category::activation, tape.qkv.dtype(),
                   {rows, model_.q_dim() + model_.kv_dim()});
  tape.head_norms.clear();
  tape.head_norms.resize(size_t(heads));
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t from = head * model_.head_dim, to = from + model_.head_dim;
    const NormLayer& norm = head < model_.num_heads ? *q_norm_ : *k_norm_;
    norm.forward(ctx, tape.qkv.view().slice(1, from, to), tape.qk.view().slice(1, from, to),
                 tape.head_norms[size_t(head)]);
  }
}

void AttentionLayer::forward(Context& ctx, const Input& input, ConstView h, View y,
                             AttentionTape& tape, KvCache* cache) const {
  const int64_t rows = input.rows(), b = input.sequences;
  const DType dtype = h.dtype;
  const auto activation = [&](const Shape& shape, DType type) {
    return Tensor(ctx.memory, Category::activation, type, shape);
  };
  tape.qkv = activation({rows, qkv_.value.size[0]}, dtype);
  kernels::linear_forward(ctx, h, qkv_.value, qkv_bias_.value, tape.qkv);
  if (q_norm_) normalise_heads(ctx, tape);
  const View rotated = q_norm_ ? tape.qk.view() : tape.qkv.view();
  if (model_.positions == spec::Positions::rope) {
    kernels::rope(ctx, q_of(rotated), input.positions, rope_table_, kernels::Rotation::forward);
    kernels::rope(ctx, k_of(rotated), input.positions, rope_table_, kernels::Rotation::forward);
  }
  tape.out = activation({rows, model_.q_dim()}, dtype);
  tape.lse = activation({b, model_.num_heads, input.seq_len}, accumulator_of(dtype));
  if (cache != nullptr) {
    attend_cached(ctx, input, tape, *cache);
  } else {
    kernels::attention_forward(ctx, shape(), q_of(rotated).split_first(b),
                               k_of(rotated).split_first(b), v_of(tape.qkv).split_first(b),
                               input.document_start, dropout(input),
                               tape.out.view().split_last(model_.num_heads).split_first(b),
                               tape.lse);
  }
  if (input.training && model_.residual_dropout > 0) {
    Tensor branch = activation({rows, model_.dim}, dtype);
    kernels::linear_forward(ctx, tape.out, out_.value, out_bias_.value, branch);
    kernels::dropout(ctx, branch, model_.residual_dropout, residual_random_, input.token_index);
    kernels::convert(ctx, branch, y, Write::accumulate);
  } else {
    kernels::linear_forward(ctx, tape.out, out_.value, out_bias_.value, y, Write::accumulate);
  }
}

// Appends this call's keys and values to the cache and attends over all of it.
void AttentionLayer::attend_cached(Context& ctx, const Input& input, AttentionTape& tape,
                                   KvCache& cache) const {
  const int64_t b = input.sequences, t = input.seq_len, past = cache.length;
  const View rotated = q_norm_ ? tape.qk.view() : tape.qkv.view();
  const View k = rotated.slice(1, model_.q_dim(), model_.q_dim() + model_.kv_dim());
  const View v = tape.qkv.view().slice(1, model_.q_dim() + model_.kv_dim(),
                                       model_.q_dim() + 2 * model_.kv_dim());
  const int64_t capacity = cache.k.shape()[1];
  CHECK(past + t <= capacity, "a cache of {} takes no {} more", capacity, t);
  for (int64_t i = 0; i < b; ++i) {
    const int64_t row = i * capacity + past;
    const Shape flat{b * capacity, model_.kv_dim()};
    kernels::convert(ctx, k.slice(0, i * t, (i + 1) * t),
                     cache.k.view().reshape(flat).slice(0, row, row + t));
    kernels::convert(ctx, v.slice(0, i * t, (i + 1) * t),
                     cache.v.view().reshape(flat).slice(0, row, row + t));
  }
  kernels::AttentionShape s = shape();
  s.q_offset = past;
  kernels::attention_forward(
      ctx, s, q_of(rotated).split_first(b),
      cache.k.view().slice(1, 0, past + t).split_last(model_.num_kv_heads),
      cache.v.view().slice(1, 0, past + t).split_last(model_.num_kv_heads), {}, std::nullopt,
      tape.out.view().split_last(model_.num_heads).split_first(b), tape.lse);
  cache.length = past + t;
}

void AttentionLayer::backward_input(Context& ctx, const Input& input, ConstView dy,
                                    const AttentionTape& tape, AttentionWork& work,
                                    View dh) const {
  const int64_t rows = input.rows(), b = input.sequences;
  const DType dtype = dy.dtype;
  const auto activation = [&](const Shape& shape) {
    return Tensor(ctx.memory, Category::activation, dtype, shape);
  };
  if (model_.residual_dropout > 0 && input.training) {
    work.dy = activation({rows, model_.dim});
    kernels::convert(ctx, dy, work.dy);
    kernels::dropout(ctx, work.dy, model_.residual_dropout, residual_random_, input.token_index);
    dy = work.dy;
  }
  Tensor dout = activation({rows, model_.q_dim()});
  kernels::linear_backward_input(ctx, dy, out_.value, dout);
  work.dqkv = activation({rows, qkv_.value.size[0]});
  if (q_norm_) work.dqk = activation({rows, model_.q_dim() + model_.kv_dim()});
  const View rotated = q_norm_ ? tape.qk.view() : tape.qkv.view();
  const View d_rotated = q_norm_ ? work.dqk.view() : work.dqkv.view();
  kernels::attention_backward(ctx, shape(), dout.view().split_last(model_.num_heads).split_first(b),
                              q_of(rotated).split_first(b), k_of(rotated).split_first(b),
                              v_of(tape.qkv).split_first(b),
                              tape.out.view().split_last(model_.num_heads).split_first(b), tape.lse,
                              input.document_start, dropout(input), q_of(d_rotated).split_first(b),
                              k_of(d_rotated).split_first(b), v_of(work.dqkv).split_first(b));
  dout = Tensor();
  if (model_.positions == spec::Positions::rope) {
    kernels::rope(ctx, q_of(d_rotated), input.positions, rope_table_, kernels::Rotation::backward);
    kernels::rope(ctx, k_of(d_rotated), input.positions, rope_table_, kernels::Rotation::backward);
  }
  for (size_t head = 0; head < tape.head_norms.size(); ++head) {
    const int64_t from = int64_t(head) * model_.head_dim, to = from + model_.head_dim;
    const NormLayer& norm = int64_t(head) < model_.num_heads ? *q_norm_ : *k_norm_;
    norm.backward_input(ctx, work.dqk.view().slice(1, from, to),
                        tape.qkv.view().slice(1, from, to), tape.head_norms[head],
                        work.dqkv.view().slice(1, from, to), Write::overwrite);
  }
  kernels::linear_backward_input(ctx, work.dqkv, qkv_.value, dh);
}

void AttentionLayer::backward_weight(Context& ctx, ConstView dy, ConstView h,
                                     const AttentionTape& tape, const AttentionWork& work) const {
  if (work.dy) dy = work.dy;
  kernels::linear_backward_weight(ctx, dy, tape.out, out_.gradient, out_bias_.gradient);
  kernels::linear_backward_weight(ctx, work.dqkv, h, qkv_.gradient, qkv_bias_.gradient);
  for (size_t head = 0; head < tape.head_norms.size(); ++head) {
    const int64_t from = int64_t(head) * model_.head_dim, to = from + model_.head_dim;
    const NormLayer& norm = int64_t(head) < model_.num_heads ? *q_norm_ : *k_norm_;
    norm.backward_weight(ctx, work.dqk.view().slice(1, from, to),
                         tape.qkv.view().slice(1, from, to), tape.head_norms[head]);
  }
}

}  // namespace fivefold::model
