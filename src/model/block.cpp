#include "model/block.hpp"

namespace fivefold::model {

using kernels::Context;
using kernels::Write;

namespace {

Tensor like(Context& ctx, const Tensor& x) {
  return Tensor(ctx.memory, Category::activation, x.dtype(), x.shape());
}

NormLayer norm_of(const spec::ModelSpec& model, const ParameterSet& set, const std::string& name) {
  return {model.norm, model.norm_eps, weight_of(set, name + ".weight"),
          weight_of(set, name + ".bias")};
}

}  // namespace

Block::Block(const spec::ModelSpec& model, const ParameterSet& set, int64_t layer,
             ConstView rope_table, uint64_t seed)
    : name_(fmt::format("model.layers.{}", layer)),
      norm1_(norm_of(model, set, name_ + ".input_layernorm")),
      norm2_(norm_of(model, set, name_ + ".post_attention_layernorm")),
      attention_(model, set, name_ + ".self_attn.", rope_table, seed),
      mlp_(model, set, name_ + ".mlp.", seed) {}

// The whole block but its last product, everything left in the tape.
void Block::run_to_hidden(Context& ctx, const Input& input, BlockTape& tape, KvCache* cache) const {
  tape.h1 = like(ctx, tape.x);
  norm1_.forward(ctx, tape.x, tape.h1, tape.norm1);
  tape.x1 = like(ctx, tape.x);
  kernels::convert(ctx, tape.x, tape.x1);
  attention_.forward(ctx, input, tape.h1, tape.x1, tape.attention, cache);
  tape.h2 = like(ctx, tape.x);
  norm2_.forward(ctx, tape.x1, tape.h2, tape.norm2);
  mlp_.forward_hidden(ctx, tape.h2, tape.mlp);
}

Tensor Block::forward(Context& ctx, const Input& input, Tensor x, Keep keep, BlockTape* tape,
                      KvCache* cache) const {
  BlockTape whole;
  whole.x = std::move(x);
  run_to_hidden(ctx, input, whole, cache);
  Tensor y = like(ctx, whole.x);
  kernels::convert(ctx, whole.x1, y);
  mlp_.forward_output(ctx, input, y, whole.mlp);
  if (tape == nullptr) return y;
  if (keep == Keep::input) {
    *tape = BlockTape{};
    tape->x = std::move(whole.x);
    return y;
  }
  if (keep == Keep::products) {
    whole.h1 = Tensor();
    whole.h2 = Tensor();
    whole.mlp.hidden = Tensor();
  }
  *tape = std::move(whole);
  return y;
}

void Block::restore(Context& ctx, const Input& input, Keep keep, BlockTape& tape) const {
  if (keep == Keep::input) {
    run_to_hidden(ctx, input, tape, nullptr);
  } else if (keep == Keep::products) {
    tape.h1 = like(ctx, tape.x);
    norm1_.forward(ctx, tape.x, tape.h1, tape.norm1);
    tape.h2 = like(ctx, tape.x);
    norm2_.forward(ctx, tape.x1, tape.h2, tape.norm2);
    mlp_.restore_hidden(ctx, tape.mlp);
  }
}

Tensor Block::backward_input(Context& ctx, const Input& input, Tensor dy, Keep keep,
                             BlockTape& tape, BlockWork& work) const {
  restore(ctx, input, keep, tape);
  work.dh2 = like(ctx, dy);
  mlp_.backward_input(ctx, input, dy, tape.mlp, work.mlp, work.dh2);
  work.dx1 = like(ctx, dy);
  kernels::convert(ctx, dy, work.dx1);
  norm2_.backward_input(ctx, work.dh2, tape.x1, tape.norm2, work.dx1, Write::accumulate);
  work.dy = std::move(dy);

  work.dh1 = like(ctx, work.dx1);
  attention_.backward_input(ctx, input, work.dx1, tape.attention, work.attention, work.dh1);
  Tensor dx = like(ctx, work.dx1);
  kernels::convert(ctx, work.dx1, dx);
  norm1_.backward_input(ctx, work.dh1, tape.x, tape.norm1, dx, Write::accumulate);
  return dx;
}

void Block::backward_weight(Context& ctx, BlockTape& tape, BlockWork& work) const {
  mlp_.backward_weight(ctx, work.dy, tape.h2, tape.mlp, work.mlp);
  norm2_.backward_weight(ctx, work.dh2, tape.x1, tape.norm2);
  attention_.backward_weight(ctx, work.dx1, tape.h1, tape.attention, work.attention);
  norm1_.backward_weight(ctx, work.dh1, tape.x, tape.norm1);
  tape = BlockTape{};
  work = BlockWork{};
}

}  // namespace fivefold::model
