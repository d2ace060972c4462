#pragma once

#include "model/attention_layer.hpp"
#include "model/mlp_layer.hpp"
#include "spec/keep.hpp"

namespace fivefold::model {

using spec::Keep;

struct BlockTape {
  Tensor x;  // the block's input [N, dim]
  NormTape norm1, norm2;
  Tensor h1, h2;  // normalised
  Tensor x1;      // after attention
  AttentionTape attention;
  MlpTape mlp;
};

// Between backward_input and backward_weight, which a schedule may keep apart.
struct BlockWork {
  Tensor dy, dx1, dh1, dh2;
  AttentionWork attention;
  MlpWork mlp;
};

// x1 = x + attention(norm1(x)); y = x1 + mlp(norm2(x1)).
class Block {
 public:
  Block(const spec::ModelSpec& model, const ParameterSet& set, int64_t layer, ConstView rope_table,
        uint64_t seed);

  // With a tape, leaves there what `keep` says (and x). Without, x is spent.
  Tensor forward(kernels::Context&, const Input&, Tensor x, Keep keep, BlockTape* tape,
                 KvCache* cache = nullptr) const;
  // The input's gradient from the output's. Restores what was not kept.
  Tensor backward_input(kernels::Context&, const Input&, Tensor dy, Keep keep, BlockTape&,
                        BlockWork&) const;
  // Adds to the gradients of the weights, and frees tape and work.
  void backward_weight(kernels::Context&, BlockTape&, BlockWork&) const;

  const std::string& name() const { return name_; }  // "model.layers.3"

 private:
  void run_to_hidden(kernels::Context&, const Input&, BlockTape&, KvCache*) const;
  void restore(kernels::Context&, const Input&, Keep keep, BlockTape&) const;

  std::string name_;
  NormLayer norm1_, norm2_;
  AttentionLayer attention_;
  MlpLayer mlp_;
};

}  // namespace fivefold::model
