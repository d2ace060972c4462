#include "spec/huggingface.hpp"

#include <algorithm>

#include "spec/checks.hpp"
#include "spec/json_reader.hpp"

namespace fivefold::spec {
namespace {

using nlohmann::json;

// Fields that say nothing about the computation: where the file comes from, how weights are stored,
// token ids, and how text is generated.
void skip_harmless(JsonReader& config) {
  config.harmless({"_name_or_path",
                   "architectures",
                   "model_type",
                   "torch_dtype",
                   "dtype",
                   "transformers_version",
                   "use_cache",
                   "auto_map",
                   "bos_token_id",
                   "eos_token_id",
                   "pad_token_id",
                   "sep_token_id",
                   "cls_token_id",
                   "unk_token_id",
                   "decoder_start_token_id",
                   "id2label",
                   "label2id",
                   "num_labels",
                   "problem_type",
                   "task_specific_params",
                   "tokenizer_class",
                   "prefix",
                   "finetuning_task",
                   "return_dict",
                   "output_attentions",
                   "output_hidden_states",
                   "torchscript",
                   "max_length",
                   "min_length",
                   "do_sample",
                   "temperature",
                   "top_k",
                   "top_p",
                   "typical_p",
                   "num_beams",
                   "num_beam_groups",
                   "num_return_sequences",
                   "length_penalty",
                   "repetition_penalty",
                   "diversity_penalty",
                   "early_stopping",
                   "no_repeat_ngram_size",
                   "bad_words_ids",
                   "suppress_tokens",
                   "begin_suppress_tokens",
                   "forced_bos_token_id",
                   "forced_eos_token_id",
                   "exponential_decay_length_penalty",
                   "encoder_no_repeat_ngram_size",
                   "remove_invalid_values",
                   "output_scores",
                   "return_dict_in_generate",
                   "n_ctx",
                   "ep_size",
                   "keys_to_ignore_at_inference",
                   "_attn_implementation",
                   "attn_implementation",
                   "use_mambapy"});
  config.only("is_encoder_decoder", false, "is another architecture");
  config.only("is_decoder", false, "is another architecture");
  config.only("add_cross_attention", false, "is another architecture");
  config.only("chunk_size_feed_forward", 0, "is not supported");
  config.only("pruned_heads", json::object(), "is not supported");
  config.only("tie_encoder_decoder", false, "is another architecture");
  config.only("cross_attention_hidden_size", json(), "is another architecture");
  config.only("pretraining_tp", 1, "splits the products another way");
}

// Two spellings: rope_scaling with rope_theta beside it, or (since version 5) both in
// rope_parameters.
void read_rope(JsonReader& config, const std::string& where, Report& report, ModelSpec& m) {
  m.rope_theta = config.real("rope_theta", 10000.0);
  const json* old = config.find("rope_scaling");
  const json* parameters = config.find("rope_parameters");
  const char* const name = parameters ? "rope_parameters" : "rope_scaling";
  if (old && parameters && *old != *parameters) {
    return config.fault("rope_scaling", "differs from rope_parameters; remove one of them");
  }
  const json* scaling = parameters ? parameters : old;
  if (!scaling) return;
  if (!scaling->is_object()) return config.fault(name, "is not an object");
  JsonReader rope(*scaling, where + name + ".", report);
  m.rope_theta = rope.real("rope_theta", m.rope_theta);
  rope.only("partial_rotary_factor", 1.0, "rotates a part of each head");
  const std::string older_type = rope.text("type", "default");
  const std::string type = rope.text("rope_type", older_type);
  if (type == "llama3") {
    RopeScaling& r = m.rope_scaling.emplace();
    r.factor = rope.real("factor");
    r.low_freq_factor = rope.real("low_freq_factor");
    r.high_freq_factor = rope.real("high_freq_factor");
    r.original_max_position_embeddings = rope.integer("original_max_position_embeddings");
  } else if (type == "yarn" && m.architecture == Architecture::deepseek_v3) {
    YarnScaling& r = m.yarn.emplace();
    r.factor = rope.real("factor");
    r.beta_fast = rope.real("beta_fast", 32.0);
    r.beta_slow = rope.real("beta_slow", 1.0);
    r.mscale = rope.real("mscale", 1.0);
    r.mscale_all_dim = rope.real("mscale_all_dim", 0.0);
    r.original_max_position_embeddings = rope.integer("original_max_position_embeddings");
  } else if (type != "default") {
    return rope.fault(scaling->contains("rope_type") ? "rope_type" : "type",
                      "is not supported; only \"default\" and \"llama3\" are");
  }
  rope.refuse_the_rest();
}

// Which layers see a window only: all or none can be honoured.
void read_window(JsonReader& config, const std::string& type, ModelSpec& m) {
  const bool mistral = type == "mistral";
  const bool qwen = type == "qwen2" || type == "qwen3";
  // Hugging Face's own default for a Mistral without the field (null is none).
  const int64_t absent = mistral && !config.has("sliding_window") ? 4096 : 0;
  const int64_t window = config.integer("sliding_window", absent);
  bool used = (mistral || type == "mixtral") && window > 0;
  if (qwen) used = config.boolean("use_sliding_window", false) && window > 0;
  const int64_t full_layers = qwen ? config.integer("max_window_layers", 28) : 0;
  if (const json* layers = config.find("layer_types")) {
    const auto all = [&](const char* kind) {
      return layers->is_array() && std::ranges::all_of(*layers, [&](const json& l) {
               return l.is_string() && l.get_ref<const std::string&>() == kind;
             });
    };
    if (all("full_attention")) {
      used = false;
    } else if (all("sliding_attention") && window > 0) {
      used = true;
    } else {
      config.fault("layer_types",
                   "mixes kinds of attention; all layers must be full_attention, or "
                   "all sliding_attention");
    }
  } else if (used && qwen && full_layers > 0) {
    if (full_layers < m.num_layers) {
      config.fault("max_window_layers",
                   "gives some layers a window and others none; only 0 is "
                   "supported with use_sliding_window");
    }
    used = false;
  }
  m.sliding_window = used ? window : 0;
}

void read_common(JsonReader& config, ModelSpec& m) {
  m.vocab_size = config.integer("vocab_size");
  m.dim = config.integer("hidden_size");
  m.num_layers = config.integer("num_hidden_layers");
  m.num_heads = config.integer("num_attention_heads");
  m.hidden_dim = config.integer("intermediate_size");
  m.max_seq_len = config.integer("max_position_embeddings");
  m.norm_eps = config.real("rms_norm_eps", 1e-6);
  m.tied_embeddings = config.boolean("tie_word_embeddings", false);
  m.init_std = config.real("initializer_range", 0.02);
  m.attention_dropout = config.real("attention_dropout", 0.0);
  config.only("hidden_act", "silu", "is another activation");
}

void read_llama_family(JsonReader& config, const std::string& type, ModelSpec& m) {
  read_common(config, m);
  m.num_kv_heads = type == "llama" || type == "qwen2" ? config.integer("num_key_value_heads", 0)
                                                      : config.integer("num_key_value_heads");
  // Qwen 3's default is 128, whatever the other sizes are.
  m.head_dim = config.integer("head_dim", type == "qwen3" ? 128 : 0);
  if (type == "llama" || type == "qwen3") {
    m.qkv_bias = m.attention_out_bias = config.boolean("attention_bias", false);
  } else {
    config.only("attention_bias", type == "qwen2", "is not how this model_type is built");
    m.qkv_bias = type == "qwen2";
  }
  if (type == "llama") {
    m.mlp_bias = config.boolean("mlp_bias", false);
  } else {
    config.only("mlp_bias", false, "is not how this model_type is built");
  }
  m.qk_norm = type == "qwen3";
  read_window(config, type, m);
}

void read_gpt2(JsonReader& config, ModelSpec& m) {
  m = defaults_of(Architecture::gpt2);
  m.vocab_size = config.integer("vocab_size");
  m.dim = config.integer("n_embd");
  m.num_layers = config.integer("n_layer");
  m.num_heads = config.integer("n_head");
  m.max_seq_len = config.integer("n_positions");
  m.hidden_dim = config.integer("n_inner", 4 * m.dim);
  m.norm_eps = config.real("layer_norm_epsilon", 1e-5);
  m.init_std = config.real("initializer_range", 0.02);
  m.embedding_dropout = config.real("embd_pdrop", 0.1);
  m.attention_dropout = config.real("attn_pdrop", 0.1);
  m.residual_dropout = config.real("resid_pdrop", 0.1);
  m.tied_embeddings = config.boolean("tie_word_embeddings", true);
  const std::string act = config.text("activation_function", "gelu_new");
  if (act != "gelu_new" && act != "gelu_pytorch_tanh") {
    config.fault("activation_function", "is another activation; only \"gelu_new\" is supported");
  }
  config.only("scale_attn_weights", true, "changes the attention");
  config.only("scale_attn_by_inverse_layer_idx", false, "changes the attention");
  config.only("reorder_and_upcast_attn", false, "changes the attention");
  config.harmless({"summary_activation", "summary_first_dropout", "summary_proj_to_labels",
                   "summary_type", "summary_use_proj", "gradient_checkpointing"});
}

void read_mixtral(JsonReader& config, ModelSpec& m) {
  read_common(config, m);
  m.num_kv_heads = config.integer("num_key_value_heads");
  m.head_dim = config.integer("head_dim", 0);
  MoeSpec& moe = m.moe.emplace();
  moe.num_experts = config.integer("num_local_experts");
  moe.top_k = config.integer("num_experts_per_tok");
  moe.moe_hidden_dim = m.hidden_dim;
  config.only("router_jitter_noise", 0.0, "is noise on the router");
  // The loss enters only when router logits are put out, which is refused.
  config.only("output_router_logits", false, "adds a loss");
  config.harmless({"router_aux_loss_coef"});
  read_window(config, "mixtral", m);
}

void read_deepseek(JsonReader& config, ModelSpec& m) {
  read_common(config, m);
  // Latent attention gives every query head a key head of its own.
  m.num_kv_heads = config.integer("num_key_value_heads", 0);
  config.only("attention_bias", false, "is not supported for this architecture");
  config.only("topk_method", "noaux_tc", "is another way of choosing experts");
  config.only("moe_layer_freq", 1, "leaves layers dense between sparse ones");
  MlaSpec& mla = m.mla.emplace();
  mla.q_lora_rank = config.integer("q_lora_rank", 0);
  mla.kv_lora_rank = config.integer("kv_lora_rank");
  mla.qk_nope_head_dim = config.integer("qk_nope_head_dim");
  mla.qk_rope_head_dim = config.integer("qk_rope_head_dim");
  mla.v_head_dim = config.integer("v_head_dim");
  MoeSpec& moe = m.moe.emplace();
  moe.num_experts = config.integer("n_routed_experts");
  moe.top_k = config.integer("num_experts_per_tok");
  moe.moe_hidden_dim = config.integer("moe_intermediate_size");
  moe.num_shared_experts = config.integer("n_shared_experts", 0);
  moe.first_dense_layers = config.integer("first_k_dense_replace", 0);
  moe.num_expert_groups = config.integer("n_group", 0);
  moe.num_limited_groups = config.integer("topk_group", 0);
  moe.router_bias = true;
  moe.score_func = config.text("scoring_func", "sigmoid");
  moe.route_scale = config.real("routed_scaling_factor", 1.0);
  moe.normalize_top_k = config.boolean("norm_topk_prob", true);
  m.num_mtp_layers = config.integer("num_nextn_predict_layers", 0);
  // aux_loss_alpha and seq_aux belong to a training this file only describes; the published weights
  // are fp8, which changes their storage and not what is counted; head_dim and the rest repeat.
  config.harmless({"aux_loss_alpha", "seq_aux", "quantization_config", "head_dim", "qk_head_dim",
                   "rope_interleave"});
}

}  // namespace

ModelSpec read_huggingface_config(std::string_view text, const std::string& file, Report& report) {
  ModelSpec m;
  const std::string where = file + ": ";
  const json root = json::parse(text, nullptr, false);
  if (!root.is_object()) {
    report.fault(where + (root.is_discarded() ? "is not JSON" : "is not a JSON object"));
    return m;
  }
  JsonReader config(root, where, report);
  const std::string type = config.text("model_type");
  if (const json* path = config.find("_name_or_path"); path && path->is_string()) {
    m.name = shortened(path->get_ref<const std::string&>(), 200);
  }
  if (type == "llama" || type == "mistral" || type == "qwen2" || type == "qwen3") {
    read_llama_family(config, type, m);
  } else if (type == "gpt2") {
    std::string name = std::move(m.name);
    read_gpt2(config, m);
    m.name = std::move(name);
  } else if (type == "mixtral") {
    m.architecture = Architecture::mixtral;
    read_mixtral(config, m);
  } else if (type == "deepseek_v3") {
    m.architecture = Architecture::deepseek_v3;
    read_deepseek(config, m);
  } else {
    config.fault("model_type",
                 "is not supported; use llama, mistral, qwen2, qwen3, gpt2, mixtral or "
                 "deepseek_v3");
    return m;
  }
  if (type != "deepseek_v3") {
    config.only("quantization_config", json(), "quantized weights come later");
  }
  if (m.positions == Positions::rope) read_rope(config, where, report, m);
  skip_harmless(config);
  config.refuse_the_rest();
  return m;
}

Result<ModelSpec> from_huggingface_config(std::string_view text, const std::string& file) {
  Report report(file);
  RunSpec run;
  run.model = read_huggingface_config(text, file, report);
  TRY(report.status());
  derive(run.model);
  const GivenKeys none;
  Checker check(run, none, report);
  check_model(check);
  TRY(report.status());
  return run.model;
}

}  // namespace fivefold::spec
