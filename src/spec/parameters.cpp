#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "spec/model.hpp"

namespace fivefold::spec {
namespace {

// Appends the tensors of one model, in the order that model.hpp promises.
class Lister {
 public:
  explicit Lister(const ModelSpec& model)
      : m_(model),
        // Each layer adds twice to the residual stream; this keeps the sum's variance independent
        // of depth. Source: Radford et al. 2019, section 2.3.
        residual_std_(model.init_std / std::sqrt(2.0 * static_cast<double>(model.num_layers))) {}

  std::vector<ParameterSpec> list() && {
    matrix("model.embed_tokens.weight", m_.vocab_size, m_.dim, "embedding");
    if (m_.positions == Positions::learned) {
      matrix("model.embed_positions.weight", m_.max_seq_len, m_.dim, "embedding");
    }
    for (layer_ = 0; layer_ < m_.num_layers; ++layer_) layer(false);
    layer_ = -1;
    norm("model.norm", m_.dim);
    if (!m_.tied_embeddings) matrix("lm_head.weight", m_.vocab_size, m_.dim, "head");
    for (int64_t i = 0; i < m_.num_mtp_layers; ++i) mtp_layer(m_.num_layers + i);
    return std::move(list_);
  }

 private:
  void add(const std::string& name, std::vector<int64_t> shape, const char* component, Init init,
           double std_dev) {
    const bool decays = shape.size() >= 2;
    list_.push_back(
        {name, std::move(shape), in_mtp_ ? "mtp" : component, layer_, init, std_dev, decays});
  }
  void matrix(const std::string& name, int64_t rows, int64_t columns, const char* component) {
    add(name, {rows, columns}, component, Init::normal, m_.init_std);
  }
  // One that writes to the residual stream.
  void last_matrix(const std::string& name, int64_t rows, int64_t columns, const char* component) {
    add(name, {rows, columns}, component, Init::normal, residual_std_);
  }
  void bias(const std::string& name, int64_t width, const char* component) {
    add(name + ".bias", {width}, component, Init::zeros, 0);
  }
  void norm(const std::string& name, int64_t width) {
    add(name + ".weight", {width}, "norm", Init::ones, 0);
    if (m_.norm == Norm::layernorm) bias(name, width, "norm");
  }

  void layer(bool mtp) {
    const std::string prefix = fmt::format("model.layers.{}.", layer_);
    norm(prefix + "input_layernorm", m_.dim);
    if (m_.mla) {
      latent_attention(prefix + "self_attn.");
    } else {
      attention(prefix + "self_attn.");
    }
    norm(prefix + "post_attention_layernorm", m_.dim);
    const bool sparse = m_.moe && (mtp || layer_ >= m_.moe->first_dense_layers);
    if (sparse && m_.architecture == Architecture::mixtral) {
      mixtral_experts(prefix + "block_sparse_moe.");
    } else if (sparse) {
      deepseek_experts(prefix + "mlp.");
    } else {
      mlp(prefix + "mlp.", m_.hidden_dim, "mlp");
    }
  }

  void attention(const std::string& prefix) {
    const std::pair<const char*, int64_t> parts[] = {
        {"q_proj", m_.q_dim()}, {"k_proj", m_.kv_dim()}, {"v_proj", m_.kv_dim()}};
    for (const auto& [name, width] : parts) {
      matrix(prefix + name + ".weight", width, m_.dim, "attention");
    }
    if (m_.qkv_bias) {
      for (const auto& [name, width] : parts) bias(prefix + name, width, "attention");
    }
    if (m_.qk_norm) {
      norm(prefix + "q_norm", m_.head_dim);
      norm(prefix + "k_norm", m_.head_dim);
    }
    last_matrix(prefix + "o_proj.weight", m_.dim, m_.q_dim(), "attention");
    if (m_.attention_out_bias) bias(prefix + "o_proj", m_.dim, "attention");
  }

  // Source: DeepSeek-V2, arXiv 2405.04434, section 2.1; names of the published checkpoint.
  void latent_attention(const std::string& prefix) {
    const MlaSpec& a = *m_.mla;
    const int64_t qk_dim = a.qk_nope_head_dim + a.qk_rope_head_dim;
    if (a.q_lora_rank > 0) {
      matrix(prefix + "q_a_proj.weight", a.q_lora_rank, m_.dim, "attention");
      norm(prefix + "q_a_layernorm", a.q_lora_rank);
      matrix(prefix + "q_b_proj.weight", m_.num_heads * qk_dim, a.q_lora_rank, "attention");
    } else {
      matrix(prefix + "q_proj.weight", m_.num_heads * qk_dim, m_.dim, "attention");
    }
    matrix(prefix + "kv_a_proj_with_mqa.weight", a.kv_lora_rank + a.qk_rope_head_dim, m_.dim,
           "attention");
    norm(prefix + "kv_a_layernorm", a.kv_lora_rank);
    matrix(prefix + "kv_b_proj.weight", m_.num_heads * (a.qk_nope_head_dim + a.v_head_dim),
           a.kv_lora_rank, "attention");
    last_matrix(prefix + "o_proj.weight", m_.dim, m_.num_heads * a.v_head_dim, "attention");
  }

  void mlp(const std::string& prefix, int64_t hidden, const char* component) {
    const bool gated = m_.mlp == Mlp::swiglu;
    if (gated) matrix(prefix + "gate_proj.weight", hidden, m_.dim, component);
    matrix(prefix + "up_proj.weight", hidden, m_.dim, component);
    if (m_.mlp_bias && gated) bias(prefix + "gate_proj", hidden, component);
    if (m_.mlp_bias) bias(prefix + "up_proj", hidden, component);
    last_matrix(prefix + "down_proj.weight", m_.dim, hidden, component);
    if (m_.mlp_bias) bias(prefix + "down_proj", m_.dim, component);
  }

  void mixtral_experts(const std::string& prefix) {
    const MoeSpec& moe = *m_.moe;
    matrix(prefix + "gate.weight", moe.num_experts, m_.dim, "moe");
    for (int64_t e = 0; e < moe.num_experts; ++e) {
      const std::string expert = fmt::format("{}experts.{}.", prefix, e);
      matrix(expert + "w1.weight", moe.moe_hidden_dim, m_.dim, "moe");  // gate
      matrix(expert + "w3.weight", moe.moe_hidden_dim, m_.dim, "moe");  // up
      last_matrix(expert + "w2.weight", m_.dim, moe.moe_hidden_dim, "moe");
    }
  }

  void deepseek_experts(const std::string& prefix) {
    const MoeSpec& moe = *m_.moe;
    matrix(prefix + "gate.weight", moe.num_experts, m_.dim, "moe");
    if (moe.router_bias) {
      add(prefix + "gate.e_score_correction_bias", {moe.num_experts}, "moe", Init::zeros, 0);
    }
    for (int64_t e = 0; e < moe.num_experts; ++e) {
      mlp(fmt::format("{}experts.{}.", prefix, e), moe.moe_hidden_dim, "moe");
    }
    if (moe.num_shared_experts > 0) {
      // The shared experts are one MLP as wide as all of them.
      mlp(prefix + "shared_experts.", moe.moe_hidden_dim * moe.num_shared_experts, "moe");
    }
  }

  // Its embedding and output head are the main model's, so they are not listed again.
  // Source: DeepSeek-V3, arXiv 2412.19437, section 2.2.
  void mtp_layer(int64_t index) {
    in_mtp_ = true;
    layer_ = index;
    const std::string prefix = fmt::format("model.layers.{}.", index);
    norm(prefix + "enorm", m_.dim);
    norm(prefix + "hnorm", m_.dim);
    matrix(prefix + "eh_proj.weight", m_.dim, 2 * m_.dim, "mtp");
    layer(true);
    norm(prefix + "shared_head.norm", m_.dim);
    layer_ = -1;
    in_mtp_ = false;
  }

  const ModelSpec& m_;
  const double residual_std_;
  int64_t layer_ = -1;
  bool in_mtp_ = false;
  std::vector<ParameterSpec> list_;
};

}  // namespace

std::vector<ParameterSpec> parameters_of(const ModelSpec& model) { return Lister(model).list(); }

ParameterCount count_parameters(const ModelSpec& model) {
  ParameterCount count;
  const std::pair<const char*, int64_t*> components[] = {{"embedding", &count.embedding},
                                                         {"attention", &count.attention},
                                                         {"mlp", &count.mlp},
                                                         {"moe", &count.moe},
                                                         {"norm", &count.norm},
                                                         {"head", &count.head},
                                                         {"mtp", &count.mtp}};
  for (const ParameterSpec& p : parameters_of(model)) {
    bool known = false;
    for (const auto& [component, sum] : components) {
      if (p.component == component) *sum += p.count(), known = true;
    }
    CHECK(known, "parameter {} of component {}", p.name, p.component);
  }
  count.active = count.total();
  if (model.moe) {
    const int64_t expert = 3 * model.dim * model.moe->moe_hidden_dim;
    count.active -= (model.num_layers - model.moe->first_dense_layers) *
                    (model.moe->num_experts - model.moe->top_k) * expert;
  }
  return count;
}

std::string name_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::llama:
      return "llama";
    case Architecture::gpt2:
      return "gpt2";
    case Architecture::mixtral:
      return "mixtral";
    case Architecture::deepseek_v3:
      return "deepseek_v3";
  }
  CHECK(false, "no such architecture");
}

}  // namespace fivefold::spec
