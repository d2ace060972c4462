// The keys of [model], which are also those of a preset in configs/models (there without a section).

#include <algorithm>

#include "spec/schema.hpp"

namespace fivefold::spec {
namespace {

template <class T>
Access<T> model(T ModelSpec::* member) {
  return field(&RunSpec::model, member);
}

// A member of an optional part of the model.
template <class Part, class T>
Access<T> part(std::optional<Part> ModelSpec::* holder, T Part::* member) {
  return {[=](const RunSpec& run) -> std::optional<T> {
            const std::optional<Part>& p = run.model.*holder;
            return p ? std::optional<T>((*p).*member) : std::nullopt;
          },
          [=](RunSpec& run, const T& value) {
            std::optional<Part>& p = run.model.*holder;
            if (p) (*p).*member = value;
            return p.has_value();
          }};
}

// An enumeration as one of `names`, in its order. An unknown name is left to the check of choices.
template <class E>
Access<std::string> choice(E ModelSpec::* member, std::vector<std::string> names) {
  return {[=](const RunSpec& run) {
            return std::optional<std::string>(names[static_cast<size_t>(run.model.*member)]);
          },
          [=](RunSpec& run, const std::string& value) {
            const auto at = std::ranges::find(names, value);
            if (at != names.end()) run.model.*member = static_cast<E>(at - names.begin());
            return true;
          }};
}

// A part that exists when a number of it is above zero.
template <class Part>
Access<int64_t> presence(std::optional<Part> ModelSpec::* holder, int64_t Part::* member) {
  return {[=](const RunSpec& run) {
            const std::optional<Part>& p = run.model.*holder;
            return std::optional<int64_t>(p ? (*p).*member : 0);
          },
          [=](RunSpec& run, const int64_t& value) {
            std::optional<Part>& p = run.model.*holder;
            if (value == 0) {
              p.reset();
            } else {
              if (!p) p.emplace();
              (*p).*member = value;
            }
            return true;
          }};
}

Access<std::string> rope_scaling_kind() {
  return {[](const RunSpec& run) {
            const ModelSpec& m = run.model;
            return std::optional<std::string>(m.rope_scaling ? "llama3" : m.yarn ? "yarn" : "none");
          },
          [](RunSpec& run, const std::string& value) {
            ModelSpec& m = run.model;
            if (value != "llama3") m.rope_scaling.reset();
            if (value != "yarn") m.yarn.reset();
            if (value == "llama3" && !m.rope_scaling) m.rope_scaling.emplace();
            if (value == "yarn" && !m.yarn) m.yarn.emplace();
            return true;
          }};
}

// Either kind of scaling has this member.
template <class T>
Access<T> scaling(T RopeScaling::* a, T YarnScaling::* b) {
  return {[=](const RunSpec& run) -> std::optional<T> {
            if (run.model.rope_scaling) return (*run.model.rope_scaling).*a;
            if (run.model.yarn) return (*run.model.yarn).*b;
            return std::nullopt;
          },
          [=](RunSpec& run, const T& value) {
            if (run.model.rope_scaling) return (*run.model.rope_scaling).*a = value, true;
            if (run.model.yarn) return (*run.model.yarn).*b = value, true;
            return false;
          }};
}

const char* const needs_scaling = "needs model.rope_scaling = \"llama3\" or \"yarn\"";
const char* const needs_llama3 = "needs model.rope_scaling = \"llama3\"";
const char* const needs_yarn = "needs model.rope_scaling = \"yarn\"";
const char* const needs_experts = "needs model.num_experts above 0";
const char* const needs_mla = "needs model.kv_lora_rank above 0";

std::vector<Key> shape_keys() {
  const auto kinds = [](std::initializer_list<const char*> names) {
    return std::vector<std::string>(names.begin(), names.end());
  };
  const auto architectures = kinds({"llama", "gpt2", "mixtral", "deepseek_v3"});
  const auto norms = kinds({"rmsnorm", "layernorm"});
  const auto positions = kinds({"rope", "learned"});
  const auto mlps = kinds({"swiglu", "gelu"});
  return {
      {.section = "model", .name = "name", .access = model(&ModelSpec::name),
       .aliases = {{"model"}},
       .doc = "A preset of configs/models, or the path of a preset file, of a Hugging Face "
              "config.json or of its folder; the section's other keys then change single values. "
              "Where `architecture` is given, the section describes the whole model and this is "
              "only its label."},
      {.section = "model", .name = "architecture",
       .access = choice(&ModelSpec::architecture, architectures), .choices = architectures,
       .doc = "`llama` is also Mistral and Qwen 2 and 3. Mixtures (`mixtral`, `deepseek_v3`) are "
              "counted and described; training them comes later."},
      {.section = "model", .name = "vocab_size", .access = model(&ModelSpec::vocab_size),
       .range = between(1, 1 << 24), .doc = "Tokens in the vocabulary."},
      {.section = "model", .name = "dim", .access = model(&ModelSpec::dim),
       .range = between(1, 1 << 20), .aliases = {{"hidden-size"}}, .doc = "Width of the model."},
      {.section = "model", .name = "num_layers", .access = model(&ModelSpec::num_layers),
       .range = between(1, 4096), .aliases = {{"num-layers"}}, .doc = "Transformer layers."},
      {.section = "model", .name = "num_heads", .access = model(&ModelSpec::num_heads),
       .range = between(1, 1 << 14), .aliases = {{"num-attention-heads"}},
       .doc = "Query heads."},
      {.section = "model", .name = "num_kv_heads", .access = model(&ModelSpec::num_kv_heads),
       .range = between(0, 1 << 14), .aliases = {{"num-query-groups"}},
       .doc = "Key and value heads; 0: as many as `num_heads`."},
      {.section = "model", .name = "head_dim", .access = model(&ModelSpec::head_dim),
       .range = between(0, 1 << 14), .aliases = {{"kv-channels"}},
       .doc = "Width of a head; 0: `dim / num_heads`."},
      {.section = "model", .name = "hidden_dim", .access = model(&ModelSpec::hidden_dim),
       .range = between(1, 1 << 22), .aliases = {{"ffn-hidden-size"}},
       .doc = "Width inside the MLP."},
      {.section = "model", .name = "max_seq_len", .access = model(&ModelSpec::max_seq_len),
       .range = between(1, 1 << 24), .aliases = {{"max-position-embeddings"}},
       .doc = "Longest sequence; with learned positions, the length of their table."},
      {.section = "model", .name = "norm", .access = choice(&ModelSpec::norm, norms),
       .choices = norms, .doc = "`layernorm` has a bias; GPT-2's."},
      {.section = "model", .name = "norm_eps", .access = model(&ModelSpec::norm_eps),
       .range = above_to(0, 1), .aliases = {{"norm-epsilon"}},
       .doc = "Added to the variance in every norm."},
      {.section = "model", .name = "positions", .access = choice(&ModelSpec::positions, positions),
       .choices = positions, .doc = "Rotary, or a learned table (GPT-2)."},
      {.section = "model", .name = "mlp", .access = choice(&ModelSpec::mlp, mlps), .choices = mlps,
       .doc = "`gelu` is the tanh form (GPT-2)."},
      {.section = "model", .name = "tied_embeddings", .access = model(&ModelSpec::tied_embeddings),
       .doc = "The output head is the embedding."},
      {.section = "model", .name = "qkv_bias", .access = model(&ModelSpec::qkv_bias),
       .doc = "Biases on the query, key and value projections (Qwen 2, GPT-2)."},
      {.section = "model", .name = "attention_out_bias",
       .access = model(&ModelSpec::attention_out_bias),
       .doc = "A bias on the attention's output projection."},
      {.section = "model", .name = "mlp_bias", .access = model(&ModelSpec::mlp_bias),
       .doc = "Biases on the MLP's projections."},
      {.section = "model", .name = "qk_norm", .access = model(&ModelSpec::qk_norm),
       .doc = "RMSNorm on each head of queries and keys (Qwen 3)."},
      {.section = "model", .name = "sliding_window", .access = model(&ModelSpec::sliding_window),
       .range = between(0, 1 << 24),
       .doc = "A token attends to this many tokens up to itself; 0: to all before it."},
      {.section = "model", .name = "embedding_dropout",
       .access = model(&ModelSpec::embedding_dropout), .range = to_below(0, 1),
       .doc = "Share of the embedding's output dropped (`gpt2` only)."},
      {.section = "model", .name = "attention_dropout",
       .access = model(&ModelSpec::attention_dropout), .range = to_below(0, 1),
       .aliases = {{"attention-dropout"}},
       .doc = "Share of attention weights dropped (`gpt2` only)."},
      {.section = "model", .name = "residual_dropout",
       .access = model(&ModelSpec::residual_dropout), .range = to_below(0, 1),
       .aliases = {{"hidden-dropout"}},
       .doc = "Share of each branch's output dropped (`gpt2` only)."},
      {.section = "model", .name = "init_std", .access = model(&ModelSpec::init_std),
       .range = above_to(0, 10), .aliases = {{"init-method-std"}},
       .doc = "Deviation of the normal that matrices start from; projections that end a branch start "
              "from `init_std / sqrt(2 * num_layers)`."},
  };
}

std::vector<Key> rope_keys() {
  const auto yarn = [](double YarnScaling::* member) { return part(&ModelSpec::yarn, member); };
  const auto llama3 = [](double RopeScaling::* member) {
    return part(&ModelSpec::rope_scaling, member);
  };
  return {
      {.section = "model", .name = "rope_theta", .access = model(&ModelSpec::rope_theta),
       .range = above_to(0, 1e15), .aliases = {{"rotary-base"}},
       .doc = "Base of the rotary frequencies."},
      {.section = "model", .name = "rope_scaling", .access = rope_scaling_kind(),
       .choices = {"none", "llama3", "yarn"}, .later_choices = {"linear", "dynamic", "longrope"},
       .doc = "Llama 3.1's scaling of low frequencies; `yarn` is described only (`deepseek_v3`)."},
      {.section = "model", .name = "rope_scaling_factor",
       .access = scaling(&RopeScaling::factor, &YarnScaling::factor), .range = between(1, 1e6),
       .needs = needs_scaling, .doc = "How many times longer than the original context."},
      {.section = "model", .name = "rope_original_max_seq_len",
       .access = scaling(&RopeScaling::original_max_position_embeddings,
                         &YarnScaling::original_max_position_embeddings),
       .range = between(1, 1 << 24), .needs = needs_scaling,
       .doc = "The context before scaling."},
      {.section = "model", .name = "rope_low_freq_factor",
       .access = llama3(&RopeScaling::low_freq_factor), .range = above_to(0, 1e6),
       .needs = needs_llama3, .doc = "Wavelengths above the original context over this are scaled."},
      {.section = "model", .name = "rope_high_freq_factor",
       .access = llama3(&RopeScaling::high_freq_factor), .range = above_to(0, 1e6),
       .needs = needs_llama3, .doc = "Wavelengths below the original context over this are kept."},
      {.section = "model", .name = "rope_beta_fast", .access = yarn(&YarnScaling::beta_fast),
       .range = above_to(0, 1e6), .needs = needs_yarn, .doc = "YaRN: turns above which it keeps."},
      {.section = "model", .name = "rope_beta_slow", .access = yarn(&YarnScaling::beta_slow),
       .range = above_to(0, 1e6), .needs = needs_yarn, .doc = "YaRN: turns below which it scales."},
      {.section = "model", .name = "rope_mscale", .access = yarn(&YarnScaling::mscale),
       .range = between(0, 1e6), .needs = needs_yarn, .doc = "YaRN: temperature of the rotation."},
      {.section = "model", .name = "rope_mscale_all_dim",
       .access = yarn(&YarnScaling::mscale_all_dim), .range = between(0, 1e6),
       .needs = needs_yarn, .doc = "YaRN: temperature of the whole score."},
  };
}

std::vector<Key> mixture_keys() {
  const auto count = [](int64_t MoeSpec::* member) { return part(&ModelSpec::moe, member); };
  return {
      {.section = "model", .name = "num_experts",
       .access = presence(&ModelSpec::moe, &MoeSpec::num_experts), .range = between(0, 4096),
       .aliases = {{"num-experts"}}, .doc = "Routed experts of a sparse layer; 0: a dense model."},
      {.section = "model", .name = "top_k", .access = count(&MoeSpec::top_k),
       .range = between(1, 4096), .needs = needs_experts,
       .aliases = {{"moe-router-topk"}, {"num-experts-per-tok"}}, .doc = "Experts of a token."},
      {.section = "model", .name = "moe_hidden_dim", .access = count(&MoeSpec::moe_hidden_dim),
       .range = between(1, 1 << 22), .needs = needs_experts, .aliases = {{"moe-ffn-hidden-size"}},
       .doc = "Width inside an expert."},
      {.section = "model", .name = "num_shared_experts",
       .access = count(&MoeSpec::num_shared_experts), .range = between(0, 4096),
       .needs = needs_experts, .doc = "Experts that every token visits."},
      {.section = "model", .name = "first_dense_layers",
       .access = count(&MoeSpec::first_dense_layers), .range = between(0, 4096),
       .needs = needs_experts, .doc = "Leading layers with a dense MLP."},
      {.section = "model", .name = "num_expert_groups", .access = count(&MoeSpec::num_expert_groups),
       .range = between(0, 4096), .needs = needs_experts, .aliases = {{"moe-router-num-groups"}},
       .doc = "Groups that the experts are divided into; 0: none."},
      {.section = "model", .name = "num_limited_groups",
       .access = count(&MoeSpec::num_limited_groups), .range = between(0, 4096),
       .needs = needs_experts, .aliases = {{"moe-router-group-topk"}},
       .doc = "Groups that a token may choose experts from."},
      {.section = "model", .name = "router_bias", .access = part(&ModelSpec::moe, &MoeSpec::router_bias),
       .needs = needs_experts, .aliases = {{"moe-router-enable-expert-bias"}},
       .doc = "A bias per expert that balances the load without a loss (`deepseek_v3`)."},
      {.section = "model", .name = "score_func", .access = part(&ModelSpec::moe, &MoeSpec::score_func),
       .choices = {"softmax", "sigmoid"}, .needs = needs_experts,
       .aliases = {{"moe-router-score-function"}}, .doc = "From router logits to scores."},
      {.section = "model", .name = "route_scale", .access = part(&ModelSpec::moe, &MoeSpec::route_scale),
       .range = above_to(0, 1e6), .needs = needs_experts,
       .aliases = {{"moe-router-topk-scaling-factor"}},
       .doc = "Factor on the chosen experts' weights."},
      {.section = "model", .name = "normalize_top_k",
       .access = part(&ModelSpec::moe, &MoeSpec::normalize_top_k), .needs = needs_experts,
       .doc = "The chosen experts' weights are divided by their sum."},
      {.section = "model", .name = "num_mtp_layers", .access = model(&ModelSpec::num_mtp_layers),
       .range = between(0, 64), .doc = "Multi-token prediction layers (`deepseek_v3`)."},
  };
}

std::vector<Key> latent_keys() {
  const auto count = [](int64_t MlaSpec::* member) { return part(&ModelSpec::mla, member); };
  return {
      {.section = "model", .name = "kv_lora_rank",
       .access = presence(&ModelSpec::mla, &MlaSpec::kv_lora_rank), .range = between(0, 1 << 20),
       .doc = "Width of the latent keys and values; 0: ordinary attention."},
      {.section = "model", .name = "q_lora_rank", .access = count(&MlaSpec::q_lora_rank),
       .range = between(0, 1 << 20), .needs = needs_mla,
       .doc = "Width of the latent queries; 0: one full matrix."},
      {.section = "model", .name = "qk_nope_head_dim", .access = count(&MlaSpec::qk_nope_head_dim),
       .range = between(1, 1 << 14), .needs = needs_mla, .doc = "Unrotated part of a head."},
      {.section = "model", .name = "qk_rope_head_dim", .access = count(&MlaSpec::qk_rope_head_dim),
       .range = between(2, 1 << 14), .needs = needs_mla, .doc = "Rotated part of a head."},
      {.section = "model", .name = "v_head_dim", .access = count(&MlaSpec::v_head_dim),
       .range = between(1, 1 << 14), .needs = needs_mla, .doc = "Width of a value head."},
  };
}

}  // namespace

std::vector<Key> model_keys() {
  std::vector<Key> keys = shape_keys();
  for (auto&& more : {rope_keys(), mixture_keys(), latent_keys()}) {
    keys.insert(keys.end(), more.begin(), more.end());
  }
  return keys;
}

}  // namespace fivefold::spec
