#pragma once
// Small models and random batches for the tests of this module and of those above it.

#include <numeric>
#include <vector>

#include "model/model.hpp"

namespace fivefold::model::testing {

inline spec::ModelSpec small_llama() {
  spec::ModelSpec m;
  m.name = "small_llama";
  m.architecture = spec::Architecture::llama;
  m.vocab_size = 37;
  m.dim = 24;
  m.num_layers = 3;
  m.num_heads = 4;
  m.num_kv_heads = 2;
  m.head_dim = 6;
  m.hidden_dim = 40;
  m.max_seq_len = 32;
  return m;
}

// All the options of the Llama family at once: Qwen's biases and QK-norm, tied embedding, Mistral's
// window, Llama 3.1's RoPE.
inline spec::ModelSpec full_llama() {
  spec::ModelSpec m = small_llama();
  m.name = "full_llama";
  m.tied_embeddings = true;
  m.qkv_bias = true;
  m.qk_norm = true;
  m.sliding_window = 5;
  m.head_dim = 8;
  m.rope_scaling = spec::RopeScaling{.original_max_position_embeddings = 16};
  return m;
}

inline spec::ModelSpec small_gpt2() {
  spec::ModelSpec m = small_llama();
  m.name = "small_gpt2";
  m.architecture = spec::Architecture::gpt2;
  m.norm = spec::Norm::layernorm;
  m.positions = spec::Positions::learned;
  m.mlp = spec::Mlp::gelu;
  m.num_kv_heads = 4;
  m.tied_embeddings = m.qkv_bias = m.attention_out_bias = m.mlp_bias = true;
  return m;
}

// Random tokens; a few targets without loss; optionally documents that end within rows.
struct RandomBatch {
  int64_t b, t;
  std::vector<int32_t> tokens, targets, positions, starts;
  std::vector<int64_t> index;

  RandomBatch(const spec::ModelSpec& m, int64_t sequences, int64_t seq_len, uint64_t seed,
              bool packed)
      : b(sequences), t(seq_len) {
    const Random random(seed, stream_of("test batch"));
    for (int64_t row = 0; row < b; ++row) {
      int32_t start = 0;
      for (int64_t i = 0; i < t; ++i) {
        const auto n = uint64_t(row * t + i);
        if (packed && i > 0 && random.below(3 * n, 6) == 0) start = int32_t(i);
        tokens.push_back(int32_t(random.below(3 * n + 1, uint64_t(m.vocab_size))));
        const auto target = int32_t(random.below(3 * n + 2, uint64_t(m.vocab_size)));
        targets.push_back(n % 7 == 3 ? -1 : target);
        positions.push_back(int32_t(i) - start);
        starts.push_back(start);
        index.push_back(int64_t(n));
      }
    }
  }
  Input input(bool training = true) const {
    Input in;
    in.sequences = b;
    in.seq_len = t;
    in.tokens = ConstView(tokens.data(), DType::i32, {b * t});
    in.targets = ConstView(targets.data(), DType::i32, {b * t});
    in.positions = ConstView(positions.data(), DType::i32, {b * t});
    in.document_start = ConstView(starts.data(), DType::i32, {b, t});
    in.token_index = ConstView(index.data(), DType::i64, {b * t});
    in.training = training;
    return in;
  }
};

// A model with random weights, biases and norms included, so that no gradient is zero by accident.
struct Rig {
  Memory memory;
  kernels::ThreadPool pool;
  kernels::Context ctx{pool, memory};
  ParameterSet parameters;
  Model model;

  Rig(const spec::ModelSpec& spec, DType dtype, const std::string& mode = "none",
      const std::string& option = "op", int threads = 2,
      kernels::Backend backend = kernels::Backend::cpu)
      : pool(threads),
        ctx{pool, memory, backend},
        parameters(memory, spec::parameters_of(spec), dtype, true),
        model(spec, parameters, ctx, spec::keep_of({mode, option}, spec.num_layers), spec.max_seq_len, 5) {
    Tensor master(memory, Category::workspace, accumulator_of(dtype), {parameters.count()});
    initialize(parameters, 11, master);
    const Random random(3, stream_of("perturb"));
    for (int64_t i = 0; i < parameters.count(); ++i) {
      const double more = 0.1 * random.normal(uint64_t(i));
      switch (dtype) {
        case DType::f64: parameters.values().as<double>()[i] += more; break;
        case DType::f32: parameters.values().as<float>()[i] += float(more); break;
        default: {
          bf16& x = parameters.values().as<bf16>()[i];
          x = to_bf16(to_float(x) + float(more));
        }
      }
    }
    parameters.zero_gradients();
  }

  // Forward and backward of one microbatch; the summed loss.
  double run(const RandomBatch& batch) {
    const Input input = batch.input();
    Tape tape;
    const double loss = model.forward(input, tape);
    model.backward(input, tape, {});
    return loss;
  }
};

}  // namespace fivefold::model::testing
