#pragma once

#include <memory>
#include <optional>

#include "model/input.hpp"
#include "model/norm_layer.hpp"

namespace fivefold::model {

// Keys and values of the tokens that were already seen, for generation.
struct KvCache {
  Tensor k, v;         // [B, capacity, kv_dim]
  int64_t length = 0;  // positions filled
};

// What the backward pass needs.
struct AttentionTape {
  Tensor qkv;               // [N, q_dim + 2 kv_dim]; q and k rotated, unless QK-norm keeps them raw
  Tensor qk;                // [N, q_dim + kv_dim], normalised and rotated; only with QK-norm
  std::vector<NormTape> head_norms;  // one a head of q, then of k; only with QK-norm
  Tensor out;               // [N, q_dim], before the output projection
  Tensor lse;               // [B, H, T]
};

// Gradients that the weights' part of the backward pass needs.
struct AttentionWork {
  Tensor dqkv, dqk;
  Tensor dy;  // of the output projection; empty when it is the layer's own dy (no dropout)
};

// Grouped-query self-attention with its four projections, on normalised input.
class AttentionLayer {
 public:
  AttentionLayer(const spec::ModelSpec& model, const ParameterSet& set, const std::string& prefix,
                 ConstView rope_table, uint64_t seed);

  // y += attention(h).   [N, dim] both.
  void forward(kernels::Context&, const Input&, ConstView h, View y, AttentionTape&,
               KvCache* cache) const;
  // dh = the input's gradient, from dy.
  void backward_input(kernels::Context&, const Input&, ConstView dy, const AttentionTape&,
                      AttentionWork&, View dh) const;
  void backward_weight(kernels::Context&, ConstView dy, ConstView h, const AttentionTape&,
                       const AttentionWork&) const;

 private:
  View q_of(View qkv) const;
  View k_of(View qkv) const;
  View v_of(View qkv) const;
  kernels::AttentionShape shape() const;
  std::optional<kernels::AttentionDropout> dropout(const Input&) const;
  void normalise_heads(kernels::Context&, AttentionTape&) const;
  void attend_cached(kernels::Context&, const Input&, AttentionTape&, KvCache&) const;

  const spec::ModelSpec& model_;
  Weight qkv_, qkv_bias_, out_, out_bias_;
  std::optional<NormLayer> q_norm_, k_norm_;
  ConstView rope_table_;
  Random attention_random_, residual_random_;
};

}  // namespace fivefold::model
