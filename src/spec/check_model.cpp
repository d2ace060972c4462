#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "spec/checks.hpp"
#include "spec/text.hpp"

namespace fivefold::spec {

bool Checker::faulted(std::initializer_list<const char*> keys) const {
  return std::ranges::any_of(keys, [&](const char* key) { return report_.faulted(key); });
}

bool Checker::given_by_user(const char* key) const {
  const auto found = given_.find(key);
  return found != given_.end() &&
         (found->second.label.starts_with("--") || found->second.label == key);
}

void Checker::require(bool holds, std::initializer_list<const char*> keys,
                      const std::string& reason) {
  if (holds || faulted(keys)) return;
  report_.at(*find_key(*keys.begin()), run_, given_, reason);
}

void Checker::ranges(const std::vector<Key>& keys) {
  for (const Key& key : keys) {
    if (key.neutral || report_.faulted(key.dotted())) continue;
    const std::optional<Value> value = value_of(key, run_);
    if (!value) continue;
    const auto reason = illegal(key, *value);
    if (!reason) continue;
    const bool missing = *value == Value(int64_t{0}) && !given_.contains(key.dotted());
    report_.at(key, run_, given_, missing ? "is missing; use " + legal_values(key) : *reason);
  }
}

std::string divisors(int64_t n) {
  std::vector<int64_t> all;
  for (int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    all.push_back(d);
    if (d != n / d) all.push_back(n / d);
  }
  std::ranges::sort(all);
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == all.size() ? " or " : ", ", all[i]);
  }
  return text;
}

void derive(ModelSpec& m) {
  if (m.mla) {
    if (m.head_dim == 0) m.head_dim = m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim;
  } else if (m.head_dim == 0 && m.num_heads > 0 && m.dim % m.num_heads == 0) {
    m.head_dim = m.dim / m.num_heads;
  }
  if (m.num_kv_heads == 0) m.num_kv_heads = m.num_heads;
}

ModelSpec defaults_of(Architecture architecture) {
  ModelSpec m;
  m.architecture = architecture;
  if (architecture == Architecture::gpt2) {
    m.norm = Norm::layernorm, m.positions = Positions::learned, m.mlp = Mlp::gelu;
    m.tied_embeddings = m.qkv_bias = m.attention_out_bias = m.mlp_bias = true;
  }
  return m;
}

namespace {

void check_heads(Checker& check) {
  const ModelSpec& m = check.run().model;
  if (!check.faulted({"model.dim", "model.num_heads", "model.head_dim"}) && m.head_dim == 0) {
    if (!check.given_by_user("model.dim") && check.given_by_user("model.num_heads")) {
      check.require(false, {"model.num_heads"},
                    fmt::format("does not divide model.dim {}; use {}, or give model.head_dim",
                                m.dim, divisors(m.dim)));
      return;
    }
    const int64_t below = m.dim / m.num_heads * m.num_heads;
    check.require(false, {"model.dim"},
                  fmt::format("is not a multiple of the {} heads; use {}, or give model.head_dim",
                              m.num_heads,
                              below > 0 ? fmt::format("{} or {}", below, below + m.num_heads)
                                        : fmt::format("{}", m.num_heads)));
    return;
  }
  check.require(m.num_kv_heads > 0 && m.num_heads % m.num_kv_heads == 0,
                {"model.num_kv_heads", "model.num_heads"},
                fmt::format("does not divide the {} query heads; use {}", m.num_heads,
                            divisors(m.num_heads)));
  check.require(m.positions != Positions::rope || m.head_dim % 2 == 0,
                {"model.head_dim", "model.positions"},
                fmt::format("is odd, and rotary positions turn pairs; use {} or {}", m.head_dim - 1,
                            m.head_dim + 1));
  check.require(m.q_dim() <= int64_t{1} << 22, {"model.num_heads", "model.head_dim"},
                fmt::format("times head_dim {} is too wide; use at most {} in all", m.head_dim,
                            int64_t{1} << 22));
}

void check_rope(Checker& check) {
  const ModelSpec& m = check.run().model;
  const bool rope = m.positions == Positions::rope;
  check.require(rope || (!m.rope_scaling && !m.yarn), {"model.rope_scaling", "model.positions"},
                "needs rotary positions; use \"none\"");
  check.require(!m.yarn || m.architecture == Architecture::deepseek_v3,
                {"model.rope_scaling", "model.architecture"},
                "is not supported for this architecture; use \"none\" or \"llama3\"");
  if (m.rope_scaling) {
    check.require(m.rope_scaling->high_freq_factor > m.rope_scaling->low_freq_factor,
                  {"model.rope_high_freq_factor", "model.rope_low_freq_factor"},
                  fmt::format("is not above rope_low_freq_factor {}; use more",
                              m.rope_scaling->low_freq_factor));
  }
}

void check_llama(Checker& check) {
  const ModelSpec& m = check.run().model;
  const char* const architecture = "model.architecture";
  const std::string name = name_of(m.architecture);
  check.require(m.norm == Norm::rmsnorm, {"model.norm", architecture},
                name + " has RMSNorm; use \"rmsnorm\"");
  check.require(m.positions == Positions::rope, {"model.positions", architecture},
                name + " has rotary positions; use \"rope\"");
  check.require(m.mlp == Mlp::swiglu, {"model.mlp", architecture},
                name + " has SwiGLU; use \"swiglu\"");
  const std::string dropout = "is for gpt2 only; use 0";
  check.require(m.embedding_dropout == 0, {"model.embedding_dropout", architecture}, dropout);
  check.require(m.attention_dropout == 0, {"model.attention_dropout", architecture}, dropout);
  check.require(m.residual_dropout == 0, {"model.residual_dropout", architecture}, dropout);
}

void check_gpt2(Checker& check) {
  const ModelSpec& m = check.run().model;
  const char* const architecture = "model.architecture";
  check.require(m.norm == Norm::layernorm, {"model.norm", architecture},
                "gpt2 has LayerNorm; use \"layernorm\"");
  check.require(m.positions == Positions::learned, {"model.positions", architecture},
                "gpt2 has learned positions; use \"learned\"");
  check.require(m.mlp == Mlp::gelu, {"model.mlp", architecture}, "gpt2 has GELU; use \"gelu\"");
  const std::string biases = "gpt2 has biases; use true";
  check.require(m.qkv_bias, {"model.qkv_bias", architecture}, biases);
  check.require(m.attention_out_bias, {"model.attention_out_bias", architecture}, biases);
  check.require(m.mlp_bias, {"model.mlp_bias", architecture}, biases);
  check.require(!m.qk_norm, {"model.qk_norm", architecture}, "is for llama only; use false");
  check.require(m.sliding_window == 0, {"model.sliding_window", architecture},
                "is for llama only; use 0");
  check.require(m.num_kv_heads == m.num_heads,
                {"model.num_kv_heads", architecture, "model.num_heads"},
                fmt::format("gpt2 has as many key heads as query heads; use {}", m.num_heads));
  check.require(m.q_dim() == m.dim,
                {"model.head_dim", architecture, "model.num_heads", "model.dim"},
                "times num_heads is not dim, as gpt2 has it; leave head_dim out");
}

void check_plain_parts(Checker& check) {
  const ModelSpec& m = check.run().model;
  const bool mixture = m.architecture == Architecture::mixtral;
  const bool deepseek = m.architecture == Architecture::deepseek_v3;
  const char* const architecture = "model.architecture";
  check.require(deepseek || mixture || !m.moe, {"model.num_experts", architecture},
                "is for mixtral and deepseek_v3 only; use 0");
  check.require(m.moe || !(deepseek || mixture), {"model.num_experts", architecture},
                name_of(m.architecture) + " has experts; use 1 to 4096");
  check.require(deepseek || !m.mla, {"model.kv_lora_rank", architecture},
                "is for deepseek_v3 only; use 0");
  check.require(m.mla || !deepseek, {"model.kv_lora_rank", architecture},
                "deepseek_v3 has latent attention; use above 0");
  check.require(deepseek || m.num_mtp_layers == 0, {"model.num_mtp_layers", architecture},
                "is for deepseek_v3 only; use 0");
  if (deepseek || mixture) {
    const std::string refused = "is not part of " + name_of(m.architecture) + "; use false";
    check.require(!m.qkv_bias, {"model.qkv_bias", architecture}, refused);
    check.require(!m.attention_out_bias, {"model.attention_out_bias", architecture}, refused);
    check.require(!m.mlp_bias, {"model.mlp_bias", architecture}, refused);
    check.require(!m.qk_norm, {"model.qk_norm", architecture}, refused);
  }
  if (deepseek) {
    check.require(m.sliding_window == 0, {"model.sliding_window", architecture},
                  "is not part of deepseek_v3; use 0");
    check.require(!m.mla || m.head_dim == m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim,
                  {"model.head_dim", "model.kv_lora_rank", "model.qk_nope_head_dim",
                   "model.qk_rope_head_dim"},
                  "is not qk_nope_head_dim + qk_rope_head_dim; leave it out");
    check.require(!m.mla || m.mla->qk_rope_head_dim % 2 == 0, {"model.qk_rope_head_dim"},
                  "is odd, and rotary positions turn pairs; use an even number");
    check.require(m.num_kv_heads == m.num_heads, {"model.num_kv_heads", "model.num_heads"},
                  fmt::format("latent attention has no separate key heads; use {}", m.num_heads));
  }
}

void check_experts(Checker& check) {
  const ModelSpec& m = check.run().model;
  if (!m.moe || check.faulted({"model.num_experts"})) return;
  const MoeSpec& e = *m.moe;
  check.require(e.top_k <= e.num_experts, {"model.top_k"},
                fmt::format("is more than the {} experts; use at most that", e.num_experts));
  check.require(e.first_dense_layers < m.num_layers,
                {"model.first_dense_layers", "model.num_layers"},
                fmt::format("leaves no sparse layer; use at most {}", m.num_layers - 1));
  const bool grouped = e.num_expert_groups > 0;
  check.require(!grouped || e.num_experts % e.num_expert_groups == 0, {"model.num_expert_groups"},
                fmt::format("does not divide the {} experts; use {}", e.num_experts,
                            divisors(e.num_experts)));
  check.require(grouped ? e.num_limited_groups >= 1 && e.num_limited_groups <= e.num_expert_groups
                        : e.num_limited_groups == 0,
                {"model.num_limited_groups", "model.num_expert_groups"},
                grouped ? fmt::format("is not a number of groups; use 1 to {}", e.num_expert_groups)
                        : std::string("needs model.num_expert_groups; use 0"));
  check.require(!grouped || e.top_k <= e.num_limited_groups * (e.num_experts / e.num_expert_groups),
                {"model.top_k", "model.num_limited_groups", "model.num_expert_groups"},
                "is more than the experts in the groups that a token may use; use less");
  if (m.architecture == Architecture::mixtral) {
    const char* const refused = "is for deepseek_v3 only; use 0";
    check.require(e.num_shared_experts == 0, {"model.num_shared_experts"}, refused);
    check.require(e.first_dense_layers == 0, {"model.first_dense_layers"}, refused);
    check.require(!grouped, {"model.num_expert_groups"}, refused);
    check.require(!e.router_bias, {"model.router_bias"}, "is for deepseek_v3 only; use false");
    check.require(e.score_func == "softmax", {"model.score_func"},
                  "mixtral scores by softmax; use \"softmax\"");
  }
}

// Sums in double precision what parameters_of would list, so that its integers cannot overflow.
void check_size(Checker& check) {
  const ModelSpec& m = check.run().model;
  const auto d = [](int64_t n) { return static_cast<double>(n); };
  double layer = 2 * d(m.dim) * (d(m.q_dim()) + d(m.kv_dim())) + 3 * d(m.dim) * d(m.hidden_dim);
  double tensors = 20;
  if (m.mla) {
    const MlaSpec& a = *m.mla;
    const double qk = d(a.qk_nope_head_dim) + d(a.qk_rope_head_dim), h = d(m.num_heads);
    layer += h * qk * (d(a.q_lora_rank) + d(m.dim)) + d(a.q_lora_rank) * d(m.dim) +
             (d(a.kv_lora_rank) + d(a.qk_rope_head_dim)) * d(m.dim) +
             h * (d(a.qk_nope_head_dim) + d(a.v_head_dim)) * d(a.kv_lora_rank) +
             h * d(a.v_head_dim) * d(m.dim);
  }
  if (m.moe) {
    layer += (d(m.moe->num_experts) + d(m.moe->num_shared_experts)) * 3 * d(m.dim) *
                 d(m.moe->moe_hidden_dim) +
             d(m.moe->num_experts) * d(m.dim);
    tensors += 3 * d(m.moe->num_experts);
  }
  const double layers = d(m.num_layers) + d(m.num_mtp_layers);
  const double total = layers * (layer + 2 * d(m.dim) * d(m.dim)) +
                       (2 * d(m.vocab_size) + d(m.max_seq_len)) * d(m.dim);
  check.require(
      total < 1e16, {"model.num_layers", "model.dim", "model.hidden_dim", "model.vocab_size"},
      fmt::format("makes about {:.0e} parameters with these sizes; use at most 1e16", total));
  check.require(layers * tensors <= 1e6, {"model.num_layers", "model.num_experts"},
                fmt::format("makes {:.0f} tensors with this many experts; use at most 1000000",
                            layers * tensors));
}

}  // namespace

void check_model(Checker& check) {
  check.ranges(model_keys());
  check_heads(check);
  check_rope(check);
  if (check.run().model.architecture == Architecture::gpt2) {
    check_gpt2(check);
  } else {
    check_llama(check);
  }
  check_plain_parts(check);
  check_experts(check);
  check_size(check);
}

Status validate_model(const ModelSpec& model) {
  RunSpec run;
  run.model = model;
  Report report(model.name.empty() ? "model" : shortened(model.name));
  const GivenKeys none;
  Checker check(run, none, report);
  check.ranges(model_keys());
  TRY(report.status());  // what follows multiplies the values
  check_model(check);
  return report.status();
}

}  // namespace fivefold::spec
