#include "spec/huggingface.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/files.hpp"

namespace fivefold::spec {
namespace {

using testing::HasSubstr;

// The fields of Llama 3.1 8B's config.json, with more to be put in at the front.
std::string llama(const std::string& more = "", const std::string& type = "llama") {
  return "{" + more + R"("model_type": ")" + type + R"(", "architectures": ["LlamaForCausalLM"],
    "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": [128001, 128008],
    "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 14336, "max_position_embeddings": 131072, "num_attention_heads": 32,
    "num_hidden_layers": 32, "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
    "torch_dtype": "bfloat16", "transformers_version": "4.43.0", "use_cache": true,
    "vocab_size": 128256})";
}

const char* const old_rope = R"("rope_theta": 500000.0, "rope_scaling": {"factor": 8.0,
  "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
  "rope_type": "llama3"}, )";
const char* const new_rope = R"("rope_parameters": {"rope_theta": 500000.0, "factor": 8.0,
  "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
  "rope_type": "llama3"}, )";

const char* const gpt2 = R"({"model_type": "gpt2", "activation_function": "gelu_new",
  "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256,
  "embd_pdrop": 0.1, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "n_ctx": 1024,
  "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1,
  "summary_activation": null, "summary_type": "cls_index",
  "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}},
  "vocab_size": 50257})";

const char* const mixtral = R"({"model_type": "mixtral", "attention_dropout": 0.0,
  "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
  "intermediate_size": 14336, "max_position_embeddings": 32768, "num_attention_heads": 32,
  "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8,
  "num_local_experts": 8, "output_router_logits": false, "rms_norm_eps": 1e-05,
  "rope_theta": 1000000.0, "router_aux_loss_coef": 0.02, "sliding_window": null,
  "tie_word_embeddings": false, "vocab_size": 32000})";

const char* const deepseek = R"({"model_type": "deepseek_v3", "attention_bias": false,
  "attention_dropout": 0.0, "aux_loss_alpha": 0.001, "ep_size": 1, "first_k_dense_replace": 3,
  "hidden_act": "silu", "hidden_size": 7168, "initializer_range": 0.02,
  "intermediate_size": 18432, "kv_lora_rank": 512, "max_position_embeddings": 163840,
  "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256,
  "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 128,
  "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128,
  "num_nextn_predict_layers": 1, "pretraining_tp": 1, "q_lora_rank": 1536,
  "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "quantization_config": {"fmt": "e4m3"},
  "rms_norm_eps": 1e-06, "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40,
  "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096,
  "type": "yarn"}, "rope_theta": 10000, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
  "seq_aux": true, "tie_word_embeddings": false, "topk_group": 4, "topk_method": "noaux_tc",
  "v_head_dim": 128, "vocab_size": 129280})";

ModelSpec read(const std::string& text) {
  const Result<ModelSpec> model = from_huggingface_config(text, "config.json");
  if (!model) ADD_FAILURE() << model.error().message << "\n" << text;
  return model.value_or(ModelSpec{});
}
std::string refused(const std::string& text) {
  const Result<ModelSpec> model = from_huggingface_config(text, "config.json");
  return model ? "(accepted)" : model.error().message;
}

ModelSpec unnamed(ModelSpec model) {
  model.name.clear();
  return model;
}

TEST(HuggingFace, ConfigsEqualThePresets) {
  EXPECT_TRUE(read(gpt2) == unnamed(*load_model("gpt2_124m")));
  EXPECT_TRUE(read(mixtral) == unnamed(*load_model("mixtral_8x7b")));
  EXPECT_TRUE(read(deepseek) == unnamed(*load_model("deepseek_v3")));
  const ModelSpec llama31 = read(llama(old_rope));
  EXPECT_EQ(count_parameters(llama31).total(), 8'030'261'248);
  EXPECT_EQ(llama31.rope_theta, 500000);
}

TEST(HuggingFace, BothSpellingsOfRopeAreOne) {
  EXPECT_TRUE(read(llama(old_rope)) == read(llama(new_rope)));
  EXPECT_EQ(read(llama(new_rope)).rope_scaling->high_freq_factor, 4);
  EXPECT_FALSE(read(llama("\"rope_scaling\": null, \"rope_theta\": 10000, ")).rope_scaling);
  EXPECT_FALSE(read(llama(R"("rope_parameters": {"rope_type": "default", "rope_theta": 7.0}, )"))
                   .rope_scaling);
  EXPECT_EQ(
      read(llama(R"("rope_parameters": {"rope_type": "default", "rope_theta": 7.0}, )")).rope_theta,
      7);
}

TEST(HuggingFace, DefaultsAreHuggingFaces) {
  EXPECT_EQ(read(llama()).rope_theta, 10000);
  EXPECT_EQ(read(llama()).sliding_window, 0);
  EXPECT_EQ(read(llama("", "mistral")).sliding_window, 4096);
  EXPECT_EQ(read(llama("\"sliding_window\": null, ", "mistral")).sliding_window, 0);
  EXPECT_EQ(read(llama("\"head_dim\": null, ")).head_dim, 128);
  EXPECT_EQ(read(llama("\"head_dim\": 64, ")).head_dim, 64);
  EXPECT_TRUE(read(gpt2).tied_embeddings);
  EXPECT_FALSE(read(llama()).tied_embeddings);
  EXPECT_EQ(read(gpt2).hidden_dim, 3072);
}

TEST(HuggingFace, FamiliesDiffer) {
  const ModelSpec qwen2 = read(llama("", "qwen2"));
  EXPECT_TRUE(qwen2.qkv_bias && !qwen2.attention_out_bias && !qwen2.qk_norm);
  const ModelSpec qwen3 = read(llama("", "qwen3"));
  EXPECT_TRUE(qwen3.qk_norm && !qwen3.qkv_bias);
  const ModelSpec biased = read(llama("\"attention_bias\": true, \"mlp_bias\": true, "));
  EXPECT_TRUE(biased.qkv_bias && biased.attention_out_bias && biased.mlp_bias);
}

TEST(HuggingFace, WindowsOfQwen) {
  const std::string off =
      R"("use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28, )";
  EXPECT_EQ(read(llama(off, "qwen2")).sliding_window, 0);
  const std::string all =
      R"("use_sliding_window": true, "sliding_window": 4096, "max_window_layers": 0, )";
  EXPECT_EQ(read(llama(all, "qwen2")).sliding_window, 4096);
  const std::string none =
      R"("use_sliding_window": true, "sliding_window": 4096, "max_window_layers": 32, )";
  EXPECT_EQ(read(llama(none, "qwen2")).sliding_window, 0);
  const std::string some =
      R"("use_sliding_window": true, "sliding_window": 4096, "max_window_layers": 16, )";
  EXPECT_THAT(refused(llama(some, "qwen2")),
              HasSubstr("max_window_layers = 16: gives some layers"));
  EXPECT_THAT(
      refused(llama(R"("layer_types": ["full_attention", "sliding_attention"], )", "qwen3")),
      HasSubstr("layer_types = […]: mixes kinds of attention"));
  EXPECT_EQ(read(llama(R"("layer_types": ["full_attention"], )", "qwen3")).sliding_window, 0);
}

struct Refusal {
  const char* field;
  const char* message;
};

TEST(HuggingFace, WhatChangesNumbersIsRefused) {
  const Refusal cases[] = {
      {R"("hidden_act": "gelu", )", "hidden_act"},
      {R"("rope_scaling": {"type": "linear", "factor": 2.0}, )",
       "rope_scaling.type = \"linear\": is not supported"},
      {R"("rope_scaling": {"rope_type": "yarn", "factor": 2.0}, )", "is not supported"},
      {R"("rope_scaling": {"rope_type": "llama3"}, )",
       "rope_scaling.factor = (absent): is missing"},
      {R"("rope_scaling": {"rope_type": "default", "new_thing": 1}, )", "new_thing"},
      {R"("rope_scaling": 3, )", "is not an object"},
      {R"("rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}, )",
       "rotates a part of each head"},
      {R"("rope_parameters": {"rope_type": "default"}, "rope_scaling": {"rope_type": "llama3"}, )",
       "differs from rope_parameters"},
      {R"("pretraining_tp": 2, )", "pretraining_tp"},
      {R"("quantization_config": {"bits": 4}, )", "quantized weights come later"},
      {R"("attention_multiplier": 0.5, )",
       "attention_multiplier = 0.5: is not known, and may change the computation"},
      {R"("attention_dropout": 0.1, )", "attention_dropout = 0.1: is for gpt2 only"},
      {R"("num_key_value_heads": 5, )", "does not divide the 32 query heads"},
      {R"("vocab_size": 1e40, )", "is not an integer from 0"},
      {R"("vocab_size": 2147483648, )", "is too large"},
      {R"("vocab_size": "many", )", "is not an integer"},
      {R"("tie_word_embeddings": "yes", )", "is not true or false"},
      {R"("rms_norm_eps": "small", )", "is not a number"},
      {R"("attention_bias": 1, )", "is not true or false"},
  };
  for (const Refusal& c : cases) {
    // A later field of the same name would win, so it is taken out.
    std::string text = llama();
    const std::string name = std::string(c.field).substr(0, std::string(c.field).find(':'));
    const size_t at = text.find(name + ":");
    if (at != std::string::npos) text.erase(at, text.find_first_of(",}", at) + 1 - at);
    if (text.back() != '}') text.back() == ' ' ? text += "\"use_cache\": true}" : text += "}";
    EXPECT_THAT(refused("{" + std::string(c.field) + text.substr(1)), HasSubstr(c.message))
        << c.field;
  }
  const Refusal gpt2_cases[] = {
      {R"("scale_attn_weights": false, )", "scale_attn_weights"},
      {R"("scale_attn_by_inverse_layer_idx": true, )", "scale_attn_by_inverse_layer_idx"},
      {R"("add_cross_attention": true, )", "add_cross_attention"},
      {R"("n_inner": 0.5, )", "n_inner"},
      {R"("rope_theta": 3, )", "rope_theta"},
  };
  for (const Refusal& c : gpt2_cases) {
    EXPECT_THAT(refused("{" + std::string(c.field) + std::string(gpt2).substr(1)),
                HasSubstr(c.message));
  }
}

TEST(HuggingFace, ForeignFilesAreRefused) {
  EXPECT_THAT(refused(""), HasSubstr("is not JSON"));
  EXPECT_THAT(refused("[1, 2]"), HasSubstr("is not a JSON object"));
  EXPECT_THAT(refused("{}"), HasSubstr("model_type = (absent): is missing"));
  EXPECT_THAT(refused(R"({"model_type": "mamba"})"), HasSubstr("is not supported; use llama"));
  EXPECT_THAT(refused(R"({"model_type": "llama"})"),
              HasSubstr("hidden_size = (absent): is missing"));
  EXPECT_THAT(refused(std::string(100000, '[')), HasSubstr("is not JSON"));
  EXPECT_THAT(refused(std::string(100000, '[') + std::string(100000, ']')),
              HasSubstr("not a JSON object"));
}

TEST(HuggingFace, ExportIsReadBack) {
  for (const char* name : {"gpt2_124m", "llama2_7b", "llama3_405b", "llama3.2_1b", "mistral_7b",
                           "qwen2_7b", "qwen3_8b", "tiny_llama", "tiny_gpt2"}) {
    const ModelSpec model = *load_model(name);
    ASSERT_TRUE(check_huggingface(model)) << name;
    EXPECT_TRUE(read(to_huggingface_config(model)) == unnamed(model)) << name;
  }
}

// Every mix of the parts that tell model types apart is either exported exactly or refused.
TEST(HuggingFace, ExportOfEveryMixIsExactOrRefused) {
  int exported = 0;
  for (int bits = 0; bits < 64; ++bits) {
    ModelSpec model = *load_model("tiny_llama");
    model.qkv_bias = bits & 1, model.attention_out_bias = bits & 2, model.mlp_bias = bits & 4;
    model.qk_norm = bits & 8, model.sliding_window = bits & 16 ? 7 : 0;
    model.tied_embeddings = bits & 32;
    if (!check_huggingface(model)) continue;
    EXPECT_TRUE(read(to_huggingface_config(model)) == unnamed(model)) << bits;
    ++exported;
  }
  EXPECT_GE(exported, 20);
  EXPECT_FALSE(check_huggingface(*load_model("mixtral_8x7b")));
}

TEST(HuggingFace, FoldersAndFilesAreModels) {
  const Path folder = Path(testing::TempDir()) / "spec_huggingface_test";
  ASSERT_TRUE(make_folder(folder));
  ASSERT_TRUE(write_file(folder / "config.json", gpt2));
  const Result<ModelSpec> by_folder = load_model(folder.string());
  ASSERT_TRUE(by_folder) << by_folder.error().message;
  EXPECT_EQ(by_folder->name, "spec_huggingface_test");
  EXPECT_EQ(count_parameters(*by_folder).total(), 124'439'808);
  const Result<ModelSpec> by_file = load_model((folder / "config.json").string());
  ASSERT_TRUE(by_file);
  EXPECT_TRUE(*by_file == *by_folder);
}

}  // namespace
}  // namespace fivefold::spec
