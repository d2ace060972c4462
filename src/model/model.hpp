#pragma once
// The whole decoder: embedding, blocks, head, each with its explicit backward halves.

#include <functional>
#include <string>
#include <vector>

#include "model/block.hpp"
#include "model/ends.hpp"

namespace fivefold::model {

// All that one microbatch leaves for its backward pass. Several may be alive at once.
struct Tape {
  std::vector<BlockTape> blocks;
  HeadTape head;
};

class Model {
 public:
  // `keep` has one entry a layer (spec::keep_of). Parameters, memory and context outlive the model.
  Model(const spec::ModelSpec& spec, const ParameterSet& parameters, kernels::Context& ctx,
        std::vector<Keep> keep, int64_t max_seq_len, uint64_t seed);

  // The sum of the token losses of a microbatch, the tape filled for `backward`.
  double forward(const Input& input, Tape& tape);
  // The same without a tape.
  double evaluate(const Input& input);

  // Adds the gradient of the summed loss to the parameters' gradients and empties the tape. Calls
  // ready(first, last) with indices into ParameterSet::all() as soon as no later part of this call
  // adds to those parameters: head first, embedding last, each parameter once.
  using Ready = std::function<void(size_t first, size_t last)>;
  void backward(const Input& input, Tape& tape, const Ready& ready);

  // Generation: logits [B, vocab] of each sequence's last token, the tokens appended to the caches.
  std::vector<KvCache> make_caches(int64_t sequences, int64_t capacity);
  Tensor next_logits(const Input& input, std::vector<KvCache>& caches);
  // Logits [N, vocab] of every token.
  Tensor logits(const Input& input);

  // The first part ("model.embed_tokens", "model.layers.3", "lm_head") whose output for `input` holds a NaN or
  // Inf; empty when none does.
  std::string first_not_finite(const Input& input);

  const ParameterSet& parameters() const { return parameters_; }
  const spec::ModelSpec& spec() const { return spec_; }

 private:
  struct Range {
    size_t first = 0, last = 0;  // parameters, inclusive
  };
  Tensor run_blocks(const Input& input, std::vector<KvCache>* caches);

  spec::ModelSpec spec_;
  const ParameterSet& parameters_;
  kernels::Context& ctx_;
  std::vector<Keep> keep_;
  Tensor rope_table_;
  EmbeddingLayer embedding_;
  std::vector<Block> blocks_;
  HeadLayer head_;
  Range embedding_range_, head_range_;
  std::vector<Range> block_ranges_;
};

// Whether all elements are finite.
bool all_finite(ConstView view);

}  // namespace fivefold::model
