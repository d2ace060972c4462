#include <nlohmann/json.hpp>

#include "base/check.hpp"
#include "spec/huggingface.hpp"

namespace fivefold::spec {
namespace {

// The model_type that has exactly these parts; empty when none has.
std::string model_type(const ModelSpec& m) {
  if (m.architecture == Architecture::gpt2) return "gpt2";
  if (m.architecture != Architecture::llama) return {};
  const bool window = m.sliding_window > 0;
  const bool both_biases = m.qkv_bias == m.attention_out_bias;
  if (m.qk_norm) return both_biases && !m.mlp_bias ? "qwen3" : "";
  if (both_biases && !window) return "llama";
  if (m.mlp_bias) return {};
  if (m.qkv_bias && !m.attention_out_bias) return "qwen2";
  return !m.qkv_bias && !m.attention_out_bias ? "mistral" : "";
}

nlohmann::ordered_json gpt2_config(const ModelSpec& m) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"activation_function", "gelu_new"},
          {"vocab_size", m.vocab_size},
          {"n_embd", m.dim},
          {"n_layer", m.num_layers},
          {"n_head", m.num_heads},
          {"n_inner", m.hidden_dim},
          {"n_positions", m.max_seq_len},
          {"layer_norm_epsilon", m.norm_eps},
          {"initializer_range", m.init_std},
          {"embd_pdrop", m.embedding_dropout},
          {"attn_pdrop", m.attention_dropout},
          {"resid_pdrop", m.residual_dropout},
          {"tie_word_embeddings", m.tied_embeddings}};
}

nlohmann::ordered_json llama_config(const ModelSpec& m, const std::string& type) {
  const char* const architecture = type == "llama"     ? "LlamaForCausalLM"
                                   : type == "mistral" ? "MistralForCausalLM"
                                   : type == "qwen2"   ? "Qwen2ForCausalLM"
                                                       : "Qwen3ForCausalLM";
  nlohmann::ordered_json config = {{"architectures", {architecture}},
                                   {"model_type", type},
                                   {"hidden_act", "silu"},
                                   {"vocab_size", m.vocab_size},
                                   {"hidden_size", m.dim},
                                   {"intermediate_size", m.hidden_dim},
                                   {"num_hidden_layers", m.num_layers},
                                   {"num_attention_heads", m.num_heads},
                                   {"num_key_value_heads", m.num_kv_heads},
                                   {"head_dim", m.head_dim},
                                   {"max_position_embeddings", m.max_seq_len},
                                   {"rms_norm_eps", m.norm_eps},
                                   {"initializer_range", m.init_std},
                                   {"attention_dropout", m.attention_dropout},
                                   {"tie_word_embeddings", m.tied_embeddings},
                                   {"rope_theta", m.rope_theta},
                                   {"rope_scaling", nullptr}};
  if (m.rope_scaling) {
    const RopeScaling& r = *m.rope_scaling;
    config["rope_scaling"] = {
        {"rope_type", "llama3"},
        {"factor", r.factor},
        {"low_freq_factor", r.low_freq_factor},
        {"high_freq_factor", r.high_freq_factor},
        {"original_max_position_embeddings", r.original_max_position_embeddings}};
  }
  if (type == "llama" || type == "qwen3") config["attention_bias"] = m.qkv_bias;
  if (type == "llama") config["mlp_bias"] = m.mlp_bias;
  const bool window = m.sliding_window > 0;
  if (type != "llama") {
    config["sliding_window"] = nullptr;
    if (window) config["sliding_window"] = m.sliding_window;
  }
  if (type == "qwen2" || type == "qwen3") {
    config["use_sliding_window"] = window;
    config["max_window_layers"] = window ? 0 : m.num_layers;
  }
  return config;
}

}  // namespace

Status check_huggingface(const ModelSpec& model) {
  TRY(validate_model(model));
  if (!model_type(model).empty()) return {};
  if (model.architecture != Architecture::llama) {
    return invalid_input("model.architecture = \"{}\": exporting it comes later",
                         name_of(model.architecture));
  }
  return invalid_input(
      "the model cannot be exported: no model_type of Hugging Face's has this mix of "
      "qkv_bias, attention_out_bias, mlp_bias, qk_norm and sliding_window");
}

std::string to_huggingface_config(const ModelSpec& model) {
  const std::string type = model_type(model);
  CHECK(!type.empty(), "check_huggingface comes before");
  return (type == "gpt2" ? gpt2_config(model) : llama_config(model, type)).dump(2) + "\n";
}

}  // namespace fivefold::spec
