#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/files.hpp"
#include "spec/model.hpp"

namespace fivefold::spec {
namespace {

ModelSpec preset(const std::string& name) {
  const Result<ModelSpec> model = load_model(name);
  if (!model) {
    ADD_FAILURE() << model.error().message;
    return {};
  }
  return *model;
}

struct Total {
  const char* name;
  int64_t total;
  // By hand, so that the test does not repeat the code: per part, what the architecture holds.
  int64_t embedding, layers, last_norm_and_head;
};

// attention: q and o, then k and v; MLP: gate, up and down; two norms.
constexpr int64_t llama_layer(int64_t dim, int64_t kv, int64_t hidden) {
  return 2 * dim * dim + 2 * dim * kv + 3 * dim * hidden + 2 * dim;
}
// attention: fused qkv and o with biases; MLP: up and down with biases; two norms with biases.
constexpr int64_t gpt2_layer(int64_t d) {
  return (3 * d * d + 3 * d) + (d * d + d) + (4 * d * d + 4 * d) + (4 * d * d + d) + 4 * d;
}

// Totals as published: the element counts of the models' safetensors files on huggingface.co.
constexpr Total totals[] = {
    {"gpt2_124m", 124'439'808, (50257 + 1024) * 768, 12 * gpt2_layer(768), 2 * 768},
    {"gpt2_medium", 354'823'168, (50257 + 1024) * 1024, 24 * gpt2_layer(1024), 2 * 1024},
    {"gpt2_large", 774'030'080, (50257 + 1024) * 1280, 36 * gpt2_layer(1280), 2 * 1280},
    {"gpt2_xl", 1'557'611'200, (50257 + 1024) * 1600, 48 * gpt2_layer(1600), 2 * 1600},
    {"llama2_7b", 6'738'415'616, 32000 * 4096, 32 * llama_layer(4096, 4096, 11008),
     4096 + 32000 * 4096},
    {"llama3_8b", 8'030'261'248, 128256 * 4096, 32 * llama_layer(4096, 1024, 14336),
     4096 + 128256 * 4096},
    {"llama3_70b", 70'553'706'496, 128256 * 8192, 80 * llama_layer(8192, 1024, 28672),
     8192 + 128256 * 8192},
    {"llama3_405b", 405'853'388'800, 128256LL * 16384, 126 * llama_layer(16384, 1024, 53248),
     16384 + 128256LL * 16384},
    {"llama3.2_1b", 1'235'814'400, 128256 * 2048, 16 * llama_layer(2048, 512, 8192), 2048},
    {"mistral_7b", 7'241'732'096, 32000 * 4096, 32 * llama_layer(4096, 1024, 14336),
     4096 + 32000 * 4096},
    {"qwen2_7b", 7'615'616'512, 152064 * 3584,
     28 * (llama_layer(3584, 512, 18944) + 3584 + 2 * 512), 3584 + 152064 * 3584},
    {"qwen3_8b", 8'190'735'360, 151936 * 4096, 36 * (llama_layer(4096, 1024, 12288) + 2 * 128),
     4096 + 151936 * 4096},
    // The llama layer's MLP eight times, and a router.
    {"mixtral_8x7b", 46'702'792'704, 32000 * 4096,
     32 * (llama_layer(4096, 1024, 0) + 8LL * 3 * 4096 * 14336 + 8 * 4096), 4096 + 32000 * 4096},
    {"llama_288x6_v32000", 15'191'712, 32000 * 288, 6 * llama_layer(288, 288, 768), 288},
    {"llama_288x6_v4096", 7'155'360, 4096 * 288, 6 * llama_layer(288, 288, 768), 288},
};

TEST(Presets, CountAsPublished) {
  for (const Total& t : totals) {
    const ParameterCount count = count_parameters(preset(t.name));
    EXPECT_EQ(count.total(), t.total) << t.name;
    EXPECT_EQ(t.embedding + t.layers + t.last_norm_and_head, t.total) << t.name << " by hand";
    EXPECT_EQ(count.embedding, t.embedding) << t.name;
    EXPECT_EQ(count.mtp, 0) << t.name;
  }
}

TEST(Presets, OfDenseModelsAreActiveWhole) {
  const ParameterCount count = count_parameters(preset("llama3_8b"));
  EXPECT_EQ(count.active, count.total());
  EXPECT_EQ(count.head, int64_t{128256} * 4096);
  EXPECT_EQ(count.moe, 0);
}

TEST(Presets, MixtralUsesTwoOfEightExperts) {
  const ParameterCount count = count_parameters(preset("mixtral_8x7b"));
  EXPECT_EQ(count.active, 12'879'925'248);
  EXPECT_EQ(count.mlp, 0);
}

TEST(Presets, DeepSeekV3CountsAsPublished) {
  const ParameterCount count = count_parameters(preset("deepseek_v3"));
  const int64_t dim = 7168, expert = 3 * dim * 2048, embedding = 129280 * dim;
  const int64_t norms = 1536 + 512 + 2 * dim;
  const int64_t attention =
      dim * 1536 + 1536 * 128 * 192 + dim * (512 + 64) + 512 * 128 * (128 + 128) + 128 * 128 * dim;
  const int64_t sparse = 257 * expert + 256 * dim + 256;  // one shared; router; its bias
  const int64_t dense = 3 * dim * 18432;
  EXPECT_EQ(count.total(), 671'026'419'200);
  EXPECT_EQ(count.total(),
            2 * embedding + 61 * (attention + norms) + dim + 58 * sparse + 3 * dense);
  EXPECT_EQ(count.attention, 61 * attention);
  EXPECT_EQ(count.moe, 58 * sparse);
  // README_WEIGHTS.md: 36.6B active without the embedding (0.9B), 11.5B unique in the MTP layer.
  EXPECT_EQ(count.active, 37'552'297'472);
  EXPECT_NEAR(static_cast<double>(count.active - embedding), 36.6e9, 0.05e9);
  EXPECT_EQ(count.mtp, attention + norms + sparse + 2 * dim * dim + 3 * dim);
  EXPECT_NEAR(static_cast<double>(count.mtp), 11.5e9, 0.15e9);
}

TEST(Presets, AreAllLoadableAndListed) {
  const std::vector<std::string> names = preset_names();
  EXPECT_GE(names.size(), 18u);
  for (const std::string& name : names) {
    const Result<ModelSpec> model = load_model(name);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->name, name);
    EXPECT_TRUE(validate_model(*model)) << name;
  }
}

TEST(Presets, CarryWhatMakesThemDifferent) {
  EXPECT_EQ(preset("mistral_7b").sliding_window, 4096);
  EXPECT_TRUE(preset("qwen2_7b").qkv_bias);
  EXPECT_FALSE(preset("qwen2_7b").attention_out_bias);
  EXPECT_TRUE(preset("qwen3_8b").qk_norm);
  EXPECT_EQ(preset("llama3.2_1b").rope_scaling->factor, 32);
  EXPECT_EQ(preset("llama3_405b").rope_scaling->factor, 8);
  EXPECT_EQ(preset("llama3.2_1b").head_dim, 64);
  EXPECT_EQ(preset("gpt2_124m").positions, Positions::learned);
  EXPECT_EQ(preset("gpt2_124m").num_kv_heads, 12);
  EXPECT_EQ(preset("deepseek_v3").yarn->factor, 40);
}

TEST(Presets, UnknownNamesGetTheClosest) {
  const auto model = load_model("llama3_8B");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, Error::Code::invalid_input);
  EXPECT_NE(model.error().message.find("did you mean llama3_8b?"), std::string::npos)
      << model.error().message;
}

TEST(Presets, AreFoundInTheChosenFolder) {
  const Path folder = Path(testing::TempDir()) / "spec_presets_test";
  ASSERT_TRUE(make_folder(folder / "models"));
  ASSERT_TRUE(write_file(folder / "models/mine.toml",
                         "architecture = \"llama\"\nvocab_size = 8\ndim = 4\nnum_layers = 1\n"
                         "num_heads = 2\nhidden_dim = 8\nmax_seq_len = 4\n"));
  setenv("FIVEFOLD_CONFIGS", folder.c_str(), 1);
  const std::vector<std::string> names = preset_names();
  const Result<ModelSpec> model = load_model("mine");
  unsetenv("FIVEFOLD_CONFIGS");
  EXPECT_EQ(names, std::vector<std::string>{"mine"});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->head_dim, 2);
  EXPECT_EQ(model->num_kv_heads, 2);
}

TEST(Presets, FilesReportEveryFaultWithItsLine) {
  const Path file = Path(testing::TempDir()) / "spec_presets_test_bad.toml";
  ASSERT_TRUE(write_file(file, "architecture = \"lama\"\nvocab_size = -1\ndimm = 4\n"));
  const auto model = load_model(file.string());
  ASSERT_FALSE(model);
  const std::string& text = model.error().message;
  EXPECT_NE(text.find(file.string() + ":1: architecture = \"lama\": is not one of the choices"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(":2: vocab_size = -1: is too small; use 1 to 16777216"), std::string::npos)
      << text;
  EXPECT_NE(text.find(":3: dimm = 4: is unknown; did you mean dim?"), std::string::npos) << text;
}

TEST(Presets, DevicesAndFoldersAreNotModels) {
  EXPECT_FALSE(load_model("/dev/zero"));
  EXPECT_FALSE(load_model(testing::TempDir()));
  EXPECT_FALSE(load_model(""));
  EXPECT_FALSE(load_model(std::string("a\0b", 3)));
}

}  // namespace
}  // namespace fivefold::spec
