#pragma once
// What a model is, as plain values: enough to build it, to count it and to price it. From a preset
// (configs/models/*.toml), a Hugging Face config.json, or the [model] section of a run file.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace fivefold::spec {

enum class Architecture : uint8_t { llama, gpt2, mixtral, deepseek_v3 };
enum class Norm : uint8_t { rmsnorm, layernorm };
enum class Positions : uint8_t { rope, learned };
enum class Mlp : uint8_t { swiglu, gelu };

// Llama 3.1's frequency scaling. Source: the "llama3" rope_scaling of its config.json.
struct RopeScaling {
  double factor = 8, low_freq_factor = 1, high_freq_factor = 4;
  int64_t original_max_position_embeddings = 8192;
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

// DeepSeek-V3's frequency scaling; described only. Source: the "yarn" rope_scaling of its
// config.json.
struct YarnScaling {
  double factor = 40, beta_fast = 32, beta_slow = 1, mscale = 1, mscale_all_dim = 1;
  int64_t original_max_position_embeddings = 4096;
  friend bool operator==(const YarnScaling&, const YarnScaling&) = default;
};

struct MoeSpec {
  int64_t num_experts = 0, top_k = 0, moe_hidden_dim = 0, num_shared_experts = 0;
  int64_t first_dense_layers = 0;  // DeepSeek: that many leading layers stay dense
  int64_t num_expert_groups = 0, num_limited_groups = 0;
  bool router_bias = false;  // DeepSeek's e_score_correction_bias, one per expert
  std::string score_func = "softmax";
  double route_scale = 1;
  bool normalize_top_k = true;  // the chosen experts' weights sum to route_scale
  friend bool operator==(const MoeSpec&, const MoeSpec&) = default;
};

// Multi-head latent attention (DeepSeek-V2/V3).
struct MlaSpec {
  int64_t q_lora_rank = 0, kv_lora_rank = 0, qk_nope_head_dim = 0, qk_rope_head_dim = 0,
          v_head_dim = 0;
  friend bool operator==(const MlaSpec&, const MlaSpec&) = default;
};

struct ModelSpec {
  std::string name;
  Architecture architecture = Architecture::llama;
  int64_t vocab_size = 0;
  int64_t dim = 0;  // hidden size
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;     // usually dim / num_heads
  int64_t hidden_dim = 0;   // of the MLP
  int64_t max_seq_len = 0;  // learned positions: the table's length
  Norm norm = Norm::rmsnorm;
  double norm_eps = 1e-5;
  Positions positions = Positions::rope;
  double rope_theta = 10000;
  std::optional<RopeScaling> rope_scaling;
  std::optional<YarnScaling> yarn;  // excludes rope_scaling
  Mlp mlp = Mlp::swiglu;
  bool tied_embeddings = false;
  bool qkv_bias = false;  // Qwen 2
  bool attention_out_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;        // Qwen 3: RMSNorm on each head of q and k
  int64_t sliding_window = 0;  // 0: none
  double embedding_dropout = 0, attention_dropout = 0, residual_dropout = 0;  // GPT-2
  std::optional<MoeSpec> moe;
  std::optional<MlaSpec> mla;
  int64_t num_mtp_layers = 0;  // DeepSeek-V3's multi-token prediction layers
  double init_std = 0.02;      // of the normal that matrices start from

  int64_t q_dim() const { return num_heads * head_dim; }
  int64_t kv_dim() const { return num_kv_heads * head_dim; }
  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

// How a parameter starts.
enum class Init : uint8_t { normal, zeros, ones };

// One trainable tensor, by its global name: the order, names and shapes that every reader shares
// (init, optimizer, checkpoint, step, planner). Names are Hugging Face's for the Llama family
// ("model.layers.3.self_attn.q_proj.weight"); GPT-2 uses the same scheme of ours, mapped to its own
// names at export.
struct ParameterSpec {
  std::string name;
  std::vector<int64_t> shape;
  std::string component;  // "embedding", "attention", "mlp", "moe", "norm", "head", "mtp"
  int64_t layer = -1;     // -1: outside the layers
  Init init = Init::normal;
  double init_std = 0;
  bool weight_decay = false;  // matrices decay; norms and biases do not

  int64_t count() const {
    int64_t n = 1;
    for (const int64_t s : shape) n *= s;
    return n;
  }
};

// All parameters, in the order of a forward pass: embedding, layers, final norm, head. Within a
// layer q, k, v are neighbours, and so are gate and up: one product computes each group.
// A tied head is not listed twice. Matrices (embeddings too) decay, vectors do not. Matrices start
// normal with deviation init_std, those that write to the residual stream (o_proj, down_proj) with
// init_std / sqrt(2 * num_layers); norms start at one, biases at zero.
// Requires a model that validate_model accepts (its bounds keep counts within int64).
std::vector<ParameterSpec> parameters_of(const ModelSpec& model);

// Parameter counts, in all and (for MoE) used per token.
struct ParameterCount {
  int64_t embedding = 0, attention = 0, mlp = 0, moe = 0, norm = 0, head = 0, mtp = 0;
  int64_t active = 0;  // of a token: top_k experts and the shared ones only, without mtp
  int64_t total() const { return embedding + attention + mlp + moe + norm + head; }  // without mtp
};
ParameterCount count_parameters(const ModelSpec& model);

// A preset's name ("llama3_8b"), a path to a preset .toml, or a path to a config.json.
// Errors   invalid_input, all faults of the file in one message.
Result<ModelSpec> load_model(const std::string& preset_or_path);

// Names of the presets shipped in configs/models.
std::vector<std::string> preset_names();

// Whether the values can be a model: ranges, divisibility, and what each architecture has.
// Errors   invalid_input, one line for each fault.
Status validate_model(const ModelSpec& model);

// "llama", "gpt2", …
std::string name_of(Architecture architecture);

}  // namespace fivefold::spec
