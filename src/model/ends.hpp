#pragma once
// The first and the last part of the model: tokens to vectors, vectors to loss.

#include "model/input.hpp"
#include "model/norm_layer.hpp"

namespace fivefold::model {

// Token embedding, plus learned positions and dropout where the model has them.
class EmbeddingLayer {
 public:
  EmbeddingLayer(const spec::ModelSpec& model, const ParameterSet& set, uint64_t seed);
  Tensor forward(kernels::Context&, const Input&) const;
  // The layer's input is not differentiable: there is only the weights' part. Spends dx.
  void backward_weight(kernels::Context&, const Input&, Tensor dx) const;

 private:
  const spec::ModelSpec& model_;
  Weight tokens_, positions_;
  Random dropout_random_;
};

struct HeadTape {
  Tensor x, h;      // before and after the final norm
  NormTape norm;
  Tensor dlogits;   // the logits, already overwritten by the gradient of the summed loss
};

struct HeadWork {
  Tensor dh;
};

// Final norm, product with the head's weights (the embedding's when tied), cross-entropy.
class HeadLayer {
 public:
  HeadLayer(const spec::ModelSpec& model, const ParameterSet& set);

  // Logits [N, vocab] in the weights' dtype, of the rows of x.
  Tensor logits(kernels::Context&, ConstView x) const;
  // The sum of the token losses. With a tape, also what the backward pass needs: the loss's
  // gradient replaces the logits at once, while they are in the cache, so they exist once.
  double forward(kernels::Context&, const Input&, Tensor x, HeadTape* tape) const;
  // Gradients are those of the summed loss; the optimizer divides by the number of tokens.
  Tensor backward_input(kernels::Context&, HeadTape&, HeadWork&) const;
  void backward_weight(kernels::Context&, HeadTape&, HeadWork&) const;

 private:
  NormLayer norm_;
  Weight head_;
};

}  // namespace fivefold::model
