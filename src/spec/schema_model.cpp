// The keys of [model], which are also those of a preset in configs/models (there without a
// section).

#include "spec/schema_access.hpp"

namespace fivefold::spec {
namespace {

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
Access<T> scaling(T RopeScaling::*a, T YarnScaling::*b) {
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

std::vector<Key> shape_keys() {
  const std::vector<std::string> architectures = {"llama", "gpt2", "mixtral", "deepseek_v3"};
  return {
      {.section = "model",
       .name = "name",
       .access = model(&ModelSpec::name),
       .aliases = {{"model"}},
       .doc = "A preset of configs/models, or the path of a preset file, of a Hugging Face "
              "config.json or of its folder; the section's other keys then change single values. "
              "Where `architecture` is given, the section describes the whole model and this is "
              "only its label."},
      {.section = "model",
       .name = "architecture",
       .access = choice(&ModelSpec::architecture, architectures),
       .choices = architectures,
       .doc = "`llama` is also Mistral and Qwen 2 and 3. Mixtures (`mixtral`, `deepseek_v3`) are "
              "counted and described; training them comes later."},
      {.section = "model",
       .name = "vocab_size",
       .access = model(&ModelSpec::vocab_size),
       .range = between(1, 1 << 24),
       .doc = "Tokens in the vocabulary."},
      {.section = "model",
       .name = "dim",
       .access = model(&ModelSpec::dim),
       .range = between(1, 1 << 20),
       .aliases = {{"hidden-size"}},
       .doc = "Width of the model."},
      {.section = "model",
       .name = "num_layers",
       .access = model(&ModelSpec::num_layers),
       .range = between(1, 4096),
       .aliases = {{"num-layers"}},
       .doc = "Transformer layers."},
      {.section = "model",
       .name = "num_heads",
       .access = model(&ModelSpec::num_heads),
       .range = between(1, 1 << 14),
       .aliases = {{"num-attention-heads"}},
       .doc = "Query heads."},
      {.section = "model",
       .name = "num_kv_heads",
       .access = model(&ModelSpec::num_kv_heads),
       .range = between(0, 1 << 14),
       .aliases = {{"num-query-groups"}},
       .doc = "Key and value heads; 0: as many as `num_heads`."},
      {.section = "model",
       .name = "head_dim",
       .access = model(&ModelSpec::head_dim),
       .range = between(0, 1 << 14),
       .aliases = {{"kv-channels"}},
       .doc = "Width of a head; 0: `dim / num_heads`."},
      {.section = "model",
       .name = "hidden_dim",
       .access = model(&ModelSpec::hidden_dim),
       .range = between(1, 1 << 22),
       .aliases = {{"ffn-hidden-size"}},
       .doc = "Width inside the MLP."},
      {.section = "model",
       .name = "max_seq_len",
       .access = model(&ModelSpec::max_seq_len),
       .range = between(1, 1 << 24),
       .aliases = {{"max-position-embeddings"}},
       .doc = "Longest sequence; with learned positions, the length of their table."},
  };
}

std::vector<Key> part_keys() {
  const std::vector<std::string> norms = {"rmsnorm", "layernorm"};
  const std::vector<std::string> positions = {"rope", "learned"};
  const std::vector<std::string> mlps = {"swiglu", "gelu"};
  return {
      {.section = "model",
       .name = "norm",
       .access = choice(&ModelSpec::norm, norms),
       .choices = norms,
       .doc = "`layernorm` has a bias; GPT-2's."},
      {.section = "model",
       .name = "norm_eps",
       .access = model(&ModelSpec::norm_eps),
       .range = above_to(0, 1),
       .aliases = {{"norm-epsilon"}},
       .doc = "Added to the variance in every norm."},
      {.section = "model",
       .name = "positions",
       .access = choice(&ModelSpec::positions, positions),
       .choices = positions,
       .doc = "Rotary, or a learned table (GPT-2)."},
      {.section = "model",
       .name = "mlp",
       .access = choice(&ModelSpec::mlp, mlps),
       .choices = mlps,
       .doc = "`gelu` is the tanh form (GPT-2)."},
      {.section = "model",
       .name = "tied_embeddings",
       .access = model(&ModelSpec::tied_embeddings),
       .doc = "The output head is the embedding."},
      {.section = "model",
       .name = "qkv_bias",
       .access = model(&ModelSpec::qkv_bias),
       .doc = "Biases on the query, key and value projections (Qwen 2, GPT-2)."},
      {.section = "model",
       .name = "attention_out_bias",
       .access = model(&ModelSpec::attention_out_bias),
       .doc = "A bias on the attention's output projection."},
      {.section = "model",
       .name = "mlp_bias",
       .access = model(&ModelSpec::mlp_bias),
       .doc = "Biases on the MLP's projections."},
      {.section = "model",
       .name = "qk_norm",
       .access = model(&ModelSpec::qk_norm),
       .doc = "RMSNorm on each head of queries and keys (Qwen 3)."},
      {.section = "model",
       .name = "sliding_window",
       .access = model(&ModelSpec::sliding_window),
       .range = between(0, 1 << 24),
       .doc = "A token attends to this many tokens up to itself; 0: to all before it."},
  };
}

std::vector<Key> chance_keys() {
  return {
      {.section = "model",
       .name = "embedding_dropout",
       .access = model(&ModelSpec::embedding_dropout),
       .range = to_below(0, 1),
       .doc = "Share of the embedding's output dropped (`gpt2` only)."},
      {.section = "model",
       .name = "attention_dropout",
       .access = model(&ModelSpec::attention_dropout),
       .range = to_below(0, 1),
       .aliases = {{"attention-dropout"}},
       .doc = "Share of attention weights dropped (`gpt2` only)."},
      {.section = "model",
       .name = "residual_dropout",
       .access = model(&ModelSpec::residual_dropout),
       .range = to_below(0, 1),
       .aliases = {{"hidden-dropout"}},
       .doc = "Share of each branch's output dropped (`gpt2` only)."},
      {.section = "model",
       .name = "init_std",
       .access = model(&ModelSpec::init_std),
       .range = above_to(0, 10),
       .aliases = {{"init-method-std"}},
       .doc =
           "Deviation of the normal that matrices start from; projections that end a branch start "
           "from `init_std / sqrt(2 * num_layers)`."},
  };
}

std::vector<Key> rope_keys() {
  const auto yarn = [](double YarnScaling::*member) { return part(&ModelSpec::yarn, member); };
  const auto llama3 = [](double RopeScaling::*member) {
    return part(&ModelSpec::rope_scaling, member);
  };
  return {
      {.section = "model",
       .name = "rope_theta",
       .access = model(&ModelSpec::rope_theta),
       .range = above_to(0, 1e15),
       .aliases = {{"rotary-base"}},
       .doc = "Base of the rotary frequencies."},
      {.section = "model",
       .name = "rope_scaling",
       .access = rope_scaling_kind(),
       .choices = {"none", "llama3", "yarn"},
       .later_choices = {"linear", "dynamic", "longrope"},
       .doc = "Llama 3.1's scaling of low frequencies; `yarn` is described only (`deepseek_v3`)."},
      {.section = "model",
       .name = "rope_scaling_factor",
       .access = scaling(&RopeScaling::factor, &YarnScaling::factor),
       .range = between(1, 1e6),
       .needs = needs_scaling,
       .doc = "How many times longer than the original context."},
      {.section = "model",
       .name = "rope_original_max_seq_len",
       .access = scaling(&RopeScaling::original_max_position_embeddings,
                         &YarnScaling::original_max_position_embeddings),
       .range = between(1, 1 << 24),
       .needs = needs_scaling,
       .doc = "The context before scaling."},
      {.section = "model",
       .name = "rope_low_freq_factor",
       .access = llama3(&RopeScaling::low_freq_factor),
       .range = above_to(0, 1e6),
       .needs = needs_llama3,
       .doc = "Wavelengths above the original context over this are scaled."},
      {.section = "model",
       .name = "rope_high_freq_factor",
       .access = llama3(&RopeScaling::high_freq_factor),
       .range = above_to(0, 1e6),
       .needs = needs_llama3,
       .doc = "Wavelengths below the original context over this are kept."},
      {.section = "model",
       .name = "rope_beta_fast",
       .access = yarn(&YarnScaling::beta_fast),
       .range = above_to(0, 1e6),
       .needs = needs_yarn,
       .doc = "YaRN: turns above which it keeps."},
      {.section = "model",
       .name = "rope_beta_slow",
       .access = yarn(&YarnScaling::beta_slow),
       .range = above_to(0, 1e6),
       .needs = needs_yarn,
       .doc = "YaRN: turns below which it scales."},
      {.section = "model",
       .name = "rope_mscale",
       .access = yarn(&YarnScaling::mscale),
       .range = between(0, 1e6),
       .needs = needs_yarn,
       .doc = "YaRN: temperature of the rotation."},
      {.section = "model",
       .name = "rope_mscale_all_dim",
       .access = yarn(&YarnScaling::mscale_all_dim),
       .range = between(0, 1e6),
       .needs = needs_yarn,
       .doc = "YaRN: temperature of the whole score."},
  };
}

}  // namespace

const std::vector<Key>& model_keys() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all = shape_keys();
    for (auto&& more : {part_keys(), chance_keys(), rope_keys(), mixture_keys(), latent_keys()}) {
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }();
  return keys;
}

}  // namespace fivefold::spec
