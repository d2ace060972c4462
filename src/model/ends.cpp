#include "model/ends.hpp"

#include <algorithm>

namespace fivefold::model {

using kernels::Context;
using kernels::Write;

EmbeddingLayer::EmbeddingLayer(const spec::ModelSpec& model, const ParameterSet& set,
                               uint64_t seed)
    : model_(model),
      tokens_(weight_of(set, "model.embed_tokens.weight")),
      positions_(weight_of(set, "model.embed_positions.weight")),
      dropout_random_(seed, stream_of("model.embedding_dropout")) {}

Tensor EmbeddingLayer::forward(Context& ctx, const Input& input) const {
  Tensor x(ctx.memory, Category::activation, tokens_.value.dtype, {input.rows(), model_.dim});
  kernels::embedding_forward(ctx, input.tokens, tokens_.value, x);
  if (positions_) {
    kernels::embedding_forward(ctx, input.positions, positions_.value, x, Write::accumulate);
  }
  if (input.training && model_.embedding_dropout > 0) {
    kernels::dropout(ctx, x, model_.embedding_dropout, dropout_random_, input.token_index);
  }
  return x;
}

void EmbeddingLayer::backward_weight(Context& ctx, const Input& input, Tensor dx) const {
  if (input.training && model_.embedding_dropout > 0) {
    kernels::dropout(ctx, dx, model_.embedding_dropout, dropout_random_, input.token_index);
  }
  kernels::embedding_backward(ctx, input.tokens, dx, tokens_.gradient);
  if (positions_) kernels::embedding_backward(ctx, input.positions, dx, positions_.gradient);
}

HeadLayer::HeadLayer(const spec::ModelSpec& model, const ParameterSet& set)
    : norm_(model.norm, model.norm_eps, weight_of(set, "model.norm.weight"),
            weight_of(set, "model.norm.bias")),
      head_(weight_of(set, model.tied_embeddings ? "model.embed_tokens.weight"
                                                 : "lm_head.weight")) {}

Tensor HeadLayer::logits(Context& ctx, ConstView x) const {
  NormTape statistics;
  Tensor h(ctx.memory, Category::activation, x.dtype, {x.size[0], x.size[1]});
  norm_.forward(ctx, x, h, statistics);
  Tensor out(ctx.memory, Category::activation, x.dtype, {x.size[0], head_.value.size[0]});
  kernels::linear_forward(ctx, h, head_.value, {}, out);
  return out;
}

double HeadLayer::forward(Context& ctx, const Input& input, Tensor x, HeadTape* tape) const {
  const int64_t rows = input.rows(), vocab = head_.value.size[0];
  HeadTape whole;
  whole.x = std::move(x);
  whole.h = Tensor(ctx.memory, Category::activation, whole.x.dtype(), whole.x.shape());
  norm_.forward(ctx, whole.x, whole.h, whole.norm);
  whole.dlogits = Tensor(ctx.memory, Category::activation, whole.x.dtype(), {rows, vocab});
  kernels::linear_forward(ctx, whole.h, head_.value, {}, whole.dlogits);

  const DType statistics = accumulator_of(whole.x.dtype());
  Tensor losses(ctx.memory, Category::activation, statistics, {rows});
  Tensor lse(ctx.memory, Category::activation, statistics, {rows});
  // A few rows at a time: the second walk over the logits finds them in the cache.
  const int64_t chunk = std::max<int64_t>(1, (int64_t{1} << 20) / (vocab * 4)) * ctx.pool.threads();
  for (int64_t from = 0; from < rows; from += chunk) {
    const int64_t to = std::min(rows, from + chunk);
    const View part = whole.dlogits.view().slice(0, from, to);
    const ConstView targets = input.targets.slice(0, from, to);
    const View row_lse = lse.view().slice(0, from, to);
    kernels::cross_entropy_forward(ctx, part, targets, losses.view().slice(0, from, to), row_lse);
    if (tape != nullptr) kernels::cross_entropy_backward(ctx, part, targets, row_lse, 1.0);
  }
  double sum = 0;
  if (statistics == DType::f64) {
    for (const double loss : losses.flat<double>()) sum += loss;
  } else {
    for (const float loss : losses.flat<float>()) sum += double(loss);
  }
  if (tape != nullptr) *tape = std::move(whole);
  return sum;
}

Tensor HeadLayer::backward_input(Context& ctx, HeadTape& tape, HeadWork& work) const {
  work.dh = Tensor(ctx.memory, Category::activation, tape.x.dtype(), tape.x.shape());
  kernels::linear_backward_input(ctx, tape.dlogits, head_.value, work.dh);
  Tensor dx(ctx.memory, Category::activation, tape.x.dtype(), tape.x.shape());
  norm_.backward_input(ctx, work.dh, tape.x, tape.norm, dx, Write::overwrite);
  return dx;
}

void HeadLayer::backward_weight(Context& ctx, HeadTape& tape, HeadWork& work) const {
  kernels::linear_backward_weight(ctx, tape.dlogits, tape.h, head_.gradient, {});
  norm_.backward_weight(ctx, work.dh, tape.x, tape.norm);
  tape = HeadTape{};
  work = HeadWork{};
}

}  // namespace fivefold::model
