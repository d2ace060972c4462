#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "spec/model.hpp"

namespace fivefold::spec {
namespace {

ModelSpec llama() {
  ModelSpec m;
  m.vocab_size = 100, m.dim = 16, m.num_layers = 2, m.num_heads = 4, m.num_kv_heads = 2;
  m.head_dim = 4, m.hidden_dim = 24, m.max_seq_len = 32;
  return m;
}

std::vector<std::string> names_of(const ModelSpec& model) {
  std::vector<std::string> names;
  for (const ParameterSpec& p : parameters_of(model)) names.push_back(p.name);
  return names;
}

TEST(Parameters, OfLlamaAreHuggingFacesInTheOrderOfTheForwardPass) {
  ModelSpec m = llama();
  m.num_layers = 1, m.qkv_bias = true, m.qk_norm = true;
  const std::string l = "model.layers.0.";
  const std::vector<std::string> expected = {"model.embed_tokens.weight",
                                             l + "input_layernorm.weight",
                                             l + "self_attn.q_proj.weight",
                                             l + "self_attn.k_proj.weight",
                                             l + "self_attn.v_proj.weight",
                                             l + "self_attn.q_proj.bias",
                                             l + "self_attn.k_proj.bias",
                                             l + "self_attn.v_proj.bias",
                                             l + "self_attn.q_norm.weight",
                                             l + "self_attn.k_norm.weight",
                                             l + "self_attn.o_proj.weight",
                                             l + "post_attention_layernorm.weight",
                                             l + "mlp.gate_proj.weight",
                                             l + "mlp.up_proj.weight",
                                             l + "mlp.down_proj.weight",
                                             "model.norm.weight",
                                             "lm_head.weight"};
  EXPECT_EQ(names_of(m), expected);
  m.tied_embeddings = true;
  EXPECT_EQ(names_of(m), std::vector<std::string>(expected.begin(), expected.end() - 1));
}

TEST(Parameters, OfGpt2CarryBiases) {
  ModelSpec m = llama();
  m.architecture = Architecture::gpt2, m.num_layers = 1, m.num_kv_heads = 4;
  m.norm = Norm::layernorm, m.positions = Positions::learned, m.mlp = Mlp::gelu;
  m.tied_embeddings = m.qkv_bias = m.attention_out_bias = m.mlp_bias = true;
  const std::string l = "model.layers.0.";
  const std::vector<std::string> expected = {"model.embed_tokens.weight",
                                             "model.embed_positions.weight",
                                             l + "input_layernorm.weight",
                                             l + "input_layernorm.bias",
                                             l + "self_attn.q_proj.weight",
                                             l + "self_attn.k_proj.weight",
                                             l + "self_attn.v_proj.weight",
                                             l + "self_attn.q_proj.bias",
                                             l + "self_attn.k_proj.bias",
                                             l + "self_attn.v_proj.bias",
                                             l + "self_attn.o_proj.weight",
                                             l + "self_attn.o_proj.bias",
                                             l + "post_attention_layernorm.weight",
                                             l + "post_attention_layernorm.bias",
                                             l + "mlp.up_proj.weight",
                                             l + "mlp.up_proj.bias",
                                             l + "mlp.down_proj.weight",
                                             l + "mlp.down_proj.bias",
                                             "model.norm.weight",
                                             "model.norm.bias"};
  EXPECT_EQ(names_of(m), expected);
}

TEST(Parameters, HaveShapesOutByIn) {
  for (const ParameterSpec& p : parameters_of(llama())) {
    if (p.name.ends_with("q_proj.weight")) {
      EXPECT_EQ(p.shape, (std::vector<int64_t>{16, 16}));
    }
    if (p.name.ends_with("k_proj.weight")) {
      EXPECT_EQ(p.shape, (std::vector<int64_t>{8, 16}));
    }
    if (p.name.ends_with("up_proj.weight")) {
      EXPECT_EQ(p.shape, (std::vector<int64_t>{24, 16}));
    }
    if (p.name.ends_with("down_proj.weight")) {
      EXPECT_EQ(p.shape, (std::vector<int64_t>{16, 24}));
    }
    EXPECT_EQ(p.layer >= 0, p.name.find(".layers.") != std::string::npos) << p.name;
  }
}

TEST(Parameters, StartAndDecayByKind) {
  ModelSpec m = llama();
  m.qkv_bias = true;
  for (const ParameterSpec& p : parameters_of(m)) {
    const bool residual = p.name.ends_with("o_proj.weight") || p.name.ends_with("down_proj.weight");
    if (p.shape.size() == 2) {
      EXPECT_EQ(p.init, Init::normal) << p.name;
      EXPECT_DOUBLE_EQ(p.init_std, residual ? 0.01 : 0.02) << p.name;  // 0.02 / sqrt(2 * 2 layers)
      EXPECT_TRUE(p.weight_decay) << p.name;
    } else {
      EXPECT_EQ(p.init, p.name.ends_with(".bias") ? Init::zeros : Init::ones) << p.name;
      EXPECT_FALSE(p.weight_decay) << p.name;
    }
  }
}

TEST(Parameters, OfAMixtureListEveryExpert) {
  ModelSpec m = llama();
  m.architecture = Architecture::mixtral;
  m.moe = MoeSpec{.num_experts = 4, .top_k = 2, .moe_hidden_dim = 8};
  const auto names = names_of(m);
  EXPECT_EQ(
      std::count(names.begin(), names.end(), "model.layers.1.block_sparse_moe.experts.3.w2.weight"),
      1);
  const ParameterCount count = count_parameters(m);
  EXPECT_EQ(count.moe, 2 * (4 * 16 + 4 * 3 * 16 * 8));
  EXPECT_EQ(count.mlp, 0);
  EXPECT_EQ(count.total() - count.active, 2 * 2 * 3 * 16 * 8);
}

}  // namespace
}  // namespace fivefold::spec
