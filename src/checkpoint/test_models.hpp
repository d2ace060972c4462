#pragma once
// Tiny models, and files such as Hugging Face writes for them, made without our own layout code.
// For tests only.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "checkpoint/safetensors.hpp"
#include "spec/model.hpp"

namespace fivefold::checkpoint {

inline spec::ModelSpec tiny_llama(bool tied) {
  spec::ModelSpec m;
  m.name = "tiny_llama";
  m.vocab_size = 37;
  m.dim = 16;
  m.num_layers = 2;
  m.num_heads = 4;
  m.num_kv_heads = 2;
  m.head_dim = 4;
  m.hidden_dim = 40;
  m.max_seq_len = 32;
  m.tied_embeddings = tied;
  return m;
}

inline spec::ModelSpec tiny_gpt2() {
  spec::ModelSpec m;
  m.name = "tiny_gpt2";
  m.architecture = spec::Architecture::gpt2;
  m.vocab_size = 29;
  m.dim = 12;
  m.num_layers = 2;
  m.num_heads = m.num_kv_heads = 3;
  m.head_dim = 4;
  m.hidden_dim = 48;
  m.max_seq_len = 16;
  m.norm = spec::Norm::layernorm;
  m.positions = spec::Positions::learned;
  m.mlp = spec::Mlp::gelu;
  m.tied_embeddings = m.qkv_bias = m.attention_out_bias = m.mlp_bias = true;
  return m;
}

struct ForeignWeight {
  std::vector<int64_t> shape;
  std::vector<float> values;
};
using ForeignWeights = std::map<std::string, ForeignWeight>;

// Names and shapes as the two published implementations have them; bits that bf16 can hold.
inline ForeignWeights foreign_weights(const spec::ModelSpec& m, uint64_t seed) {
  ForeignWeights weights;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    const Random random(seed, stream_of(name));
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(to_float(to_bf16(float(random.normal(uint64_t(i))))));
    }
    weights[name] = {std::move(shape), std::move(values)};
  };
  const bool gpt2 = m.architecture == spec::Architecture::gpt2;
  if (gpt2) {
    add("transformer.wte.weight", {m.vocab_size, m.dim});
    add("transformer.wpe.weight", {m.max_seq_len, m.dim});
    for (const char* kind : {"weight", "bias"})
      add(fmt::format("transformer.ln_f.{}", kind), {m.dim});
  } else {
    add("model.embed_tokens.weight", {m.vocab_size, m.dim});
    add("model.norm.weight", {m.dim});
    if (!m.tied_embeddings) add("lm_head.weight", {m.vocab_size, m.dim});
  }
  for (int64_t layer = 0; layer < m.num_layers; ++layer) {
    if (gpt2) {
      const std::string h = fmt::format("transformer.h.{}.", layer);
      for (const char* norm : {"ln_1.", "ln_2."}) {
        for (const char* kind : {"weight", "bias"}) add(h + norm + kind, {m.dim});
      }
      add(h + "attn.c_attn.weight", {m.dim, 3 * m.dim});
      add(h + "attn.c_attn.bias", {3 * m.dim});
      add(h + "attn.c_proj.weight", {m.dim, m.dim});
      add(h + "attn.c_proj.bias", {m.dim});
      add(h + "mlp.c_fc.weight", {m.dim, m.hidden_dim});
      add(h + "mlp.c_fc.bias", {m.hidden_dim});
      add(h + "mlp.c_proj.weight", {m.hidden_dim, m.dim});
      add(h + "mlp.c_proj.bias", {m.dim});
    } else {
      const std::string l = fmt::format("model.layers.{}.", layer);
      add(l + "input_layernorm.weight", {m.dim});
      add(l + "post_attention_layernorm.weight", {m.dim});
      add(l + "self_attn.q_proj.weight", {m.num_heads * m.head_dim, m.dim});
      add(l + "self_attn.k_proj.weight", {m.num_kv_heads * m.head_dim, m.dim});
      add(l + "self_attn.v_proj.weight", {m.num_kv_heads * m.head_dim, m.dim});
      add(l + "self_attn.o_proj.weight", {m.dim, m.num_heads * m.head_dim});
      add(l + "mlp.gate_proj.weight", {m.hidden_dim, m.dim});
      add(l + "mlp.up_proj.weight", {m.hidden_dim, m.dim});
      add(l + "mlp.down_proj.weight", {m.dim, m.hidden_dim});
    }
  }
  return weights;
}

// Sorted by name with {"format": "pt"}, in f32 or bf16.
inline void write_foreign(const Path& path, const ForeignWeights& weights,
                          DType dtype = DType::f32) {
  std::vector<std::vector<bf16>> rounded;
  std::vector<TensorToStore> tensors;
  for (const auto& [name, w] : weights) {
    const Shape flat{int64_t(w.values.size())};
    if (dtype == DType::f32) {
      tensors.push_back({name, {w.values.data(), dtype, flat}, w.shape});
      continue;
    }
    std::vector<bf16>& half = rounded.emplace_back();
    for (const float x : w.values) half.push_back(to_bf16(x));
    tensors.push_back({name, {half.data(), dtype, flat}, w.shape});
  }
  const Status status = write_safetensors(path, tensors, {{"format", "pt"}});
  ASSERT_TRUE(status) << status.error().message;
}

// The weights over `count` shards in turn, with their index.
inline void write_foreign_shards(const Path& folder, const ForeignWeights& weights, size_t count) {
  std::vector<ForeignWeights> shards(count);
  std::string map;
  size_t i = 0;
  for (const auto& [name, weight] : weights) {
    const size_t shard = i++ % count;
    shards[shard][name] = weight;
    map += fmt::format("{}\"{}\":\"model-{:05}-of-{:05}.safetensors\"", map.empty() ? "" : ",",
                       name, shard + 1, count);
  }
  for (size_t s = 0; s < count; ++s) {
    write_foreign(folder / fmt::format("model-{:05}-of-{:05}.safetensors", s + 1, count),
                  shards[s]);
  }
  ASSERT_TRUE(write_file(folder / "model.safetensors.index.json",
                         "{\"metadata\":{\"total_size\":1},\"weight_map\":{" + map + "}}"));
}

}  // namespace fivefold::checkpoint
