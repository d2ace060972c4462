#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "base/random.hpp"
#include "checkpoint/huggingface.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/test_models.hpp"

namespace fivefold::checkpoint {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Import : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = Path(testing::TempDir()) / fmt::format("import_test.{}", ::getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Status import(const spec::ModelSpec& model, const Path& path, DType dtype = DType::f32) {
    set_.emplace(memory_, spec::parameters_of(model), dtype, false);
    return import_huggingface(path, model, *set_);
  }
  std::string message(const spec::ModelSpec& model, const Path& path) {
    const Status status = import(model, path);
    if (status) return "it was accepted";
    EXPECT_EQ(status.error().code, Error::Code::invalid_input);
    return status.error().message;
  }
  // Element [r, c] of a parameter.
  float element(const std::string& name, int64_t r, int64_t c) const {
    const View view = set_->value(set_->at(name));
    return view.as<float>()[r * view.columns() + c];
  }

  Memory memory_;
  Path folder_;
  std::optional<ParameterSet> set_;
};

TEST_F(Import, LlamaTensorsAreTheParameters) {
  const spec::ModelSpec model = tiny_llama(false);
  const ForeignWeights weights = foreign_weights(model, 1);
  write_foreign(folder_ / "model.safetensors", weights);
  for (const Path& path : {folder_, folder_ / "model.safetensors"}) {
    const Status status = import(model, path);
    ASSERT_TRUE(status) << status.error().message;
    for (const Parameter& p : set_->all()) {
      const std::vector<float>& want = weights.at(p.spec.name).values;
      EXPECT_EQ(std::memcmp(set_->value(p).data, want.data(), want.size() * 4), 0) << p.spec.name;
    }
  }
}

// Hugging Face's Conv1D keeps [in, out]; c_attn holds q, k and v side by side.
TEST_F(Import, Gpt2WeightsAreTransposedAndSplit) {
  const spec::ModelSpec model = tiny_gpt2();
  for (const bool prefixed : {true, false}) {
    ForeignWeights weights = foreign_weights(model, 2);
    if (!prefixed) {
      ForeignWeights bare;
      for (auto& [name, tensor] : weights) bare[name.substr(12)] = tensor;
      weights = bare;
    }
    const std::string prefix = prefixed ? "transformer." : "";
    write_foreign(folder_ / "model.safetensors", weights);
    const Status status = import(model, folder_);
    ASSERT_TRUE(status) << status.error().message;
    const int64_t dim = model.dim, hidden = model.hidden_dim;
    const auto& fused = weights.at(prefix + "h.1.attn.c_attn.weight").values;
    const auto& bias = weights.at(prefix + "h.1.attn.c_attn.bias").values;
    const auto& up = weights.at(prefix + "h.0.mlp.c_fc.weight").values;
    const char* parts[] = {"q", "k", "v"};
    for (int64_t p = 0; p < 3; ++p) {
      const std::string name = fmt::format("model.layers.1.self_attn.{}_proj.", parts[p]);
      for (int64_t out = 0; out < dim; ++out) {
        EXPECT_EQ(element(name + "bias", 0, out), bias[size_t(p * dim + out)]);
        for (int64_t in = 0; in < dim; ++in) {
          EXPECT_EQ(element(name + "weight", out, in), fused[size_t(in * 3 * dim + p * dim + out)]);
        }
      }
    }
    for (int64_t out = 0; out < hidden; ++out) {
      for (int64_t in = 0; in < dim; ++in) {
        EXPECT_EQ(element("model.layers.0.mlp.up_proj.weight", out, in),
                  up[size_t(in * hidden + out)]);
      }
    }
    EXPECT_EQ(element("model.embed_positions.weight", 3, 2),
              weights.at(prefix + "wpe.weight").values[size_t(3 * dim + 2)]);
  }
}

TEST_F(Import, ShardsWithAnIndexAreOneModel) {
  const spec::ModelSpec model = tiny_llama(true);
  const ForeignWeights weights = foreign_weights(model, 3);
  write_foreign_shards(folder_, weights, 3);
  const Status status = import(model, folder_);
  ASSERT_TRUE(status) << status.error().message;
  for (const Parameter& p : set_->all()) {
    const std::vector<float>& want = weights.at(p.spec.name).values;
    EXPECT_EQ(std::memcmp(set_->value(p).data, want.data(), want.size() * 4), 0) << p.spec.name;
  }
}

TEST_F(Import, IndexAndShardsMustAgree) {
  const spec::ModelSpec model = tiny_llama(true);
  const ForeignWeights weights = foreign_weights(model, 3);
  const Path index = folder_ / "model.safetensors.index.json";
  const auto edit = [&](const std::string& from, const std::string& to) {
    write_foreign_shards(folder_, weights, 2);
    std::string text = read_file(index).value();
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    ASSERT_TRUE(write_file(index, text.replace(at, from.size(), to)));
  };
  edit("\"model.norm.weight\"", "\"model.norm.other\"");
  EXPECT_THAT(message(model, folder_), HasSubstr("holds tensor model.norm.weight, which"));
  edit("\"weight_map\":{", R"("weight_map":{"more":"model-00001-of-00002.safetensors",)");
  EXPECT_THAT(message(model, folder_), HasSubstr("lists tensor more in"));
  edit("\"weight_map\"", "\"weights\"");
  EXPECT_THAT(message(model, folder_), HasSubstr("has no weight_map"));
  edit("\"model-00001-of-00002.safetensors\"", "\"../m.safetensors\"");
  EXPECT_THAT(message(model, folder_), HasSubstr("not a plain file name"));
  edit("\"weight_map\":{", R"("weight_map":{"x":"a","x":"a",)");
  EXPECT_THAT(message(model, folder_), HasSubstr("lists \"x\" twice"));
  edit("{", "");
  EXPECT_THAT(message(model, folder_), HasSubstr("not JSON"));
  write_foreign_shards(folder_, weights, 2);
  std::filesystem::remove(folder_ / "model-00002-of-00002.safetensors");
  EXPECT_THAT(message(model, folder_), HasSubstr("no such file"));
}

TEST_F(Import, AmbiguousAndEmptyFoldersAreRefused) {
  const spec::ModelSpec model = tiny_llama(true);
  EXPECT_THAT(message(model, folder_), HasSubstr("no model.safetensors"));
  EXPECT_THAT(message(model, folder_ / "none"), HasSubstr("no such file"));
  ASSERT_TRUE(write_file(folder_ / "pytorch_model.bin", "x"));
  EXPECT_THAT(message(model, folder_), HasSubstr("convert it to safetensors"));
  write_foreign(folder_ / "model.safetensors", foreign_weights(model, 3));
  write_foreign_shards(folder_, foreign_weights(model, 3), 2);
  EXPECT_THAT(message(model, folder_), HasSubstr("holds both"));
}

TEST_F(Import, AllFaultsAreListedAtOnce) {
  const spec::ModelSpec model = tiny_llama(false);
  ForeignWeights weights = foreign_weights(model, 4);
  weights.erase("model.norm.weight");
  weights["model.layers.9.mlp.up_proj.weight"] = {{1}, {0}};
  weights["model.layers.2.self_attn.rotary_emb.inv_freq"] = {{1}, {0}};  // there is no layer 2
  std::swap(weights["model.layers.0.mlp.up_proj.weight"].shape[0],
            weights["model.layers.0.mlp.up_proj.weight"].shape[1]);
  weights.erase("lm_head.weight");
  write_foreign(folder_ / "model.safetensors", weights);
  EXPECT_THAT(message(model, folder_),
              AllOf(HasSubstr("model.norm.weight is missing"),
                    HasSubstr("lm_head.weight is missing; if the head is tied"),
                    HasSubstr("model.layers.9.mlp.up_proj.weight is left over"),
                    HasSubstr("model.layers.2.self_attn.rotary_emb.inv_freq is left over"),
                    HasSubstr("up_proj.weight is [16, 40] in the file, [40, 16] in the model")));
}

TEST_F(Import, ManyFaultsAreCounted) {
  ForeignWeights weights = foreign_weights(tiny_llama(false), 4);
  for (int i = 0; i < 30; ++i) weights[fmt::format("extra.{:02}", i)] = {{1}, {0}};
  write_foreign(folder_ / "model.safetensors", weights);
  EXPECT_THAT(
      message(tiny_llama(false), folder_),
      AllOf(HasSubstr("extra.19"), testing::Not(HasSubstr("extra.20")), HasSubstr("and 10 more")));
}

TEST_F(Import, WeightsThatAreNotFiniteAreAllNamed) {
  const spec::ModelSpec model = tiny_gpt2();
  ForeignWeights weights = foreign_weights(model, 5);
  weights["transformer.h.0.attn.c_attn.weight"].values[3 * size_t(model.dim) + 5] = NAN;
  weights["transformer.ln_f.bias"].values[2] = -INFINITY;
  write_foreign(folder_ / "model.safetensors", weights);
  EXPECT_THAT(message(model, folder_),
              AllOf(HasSubstr("transformer.h.0.attn.c_attn.weight: element [1, 5] is NaN"),
                    HasSubstr("transformer.ln_f.bias: element [2] is -Inf")));
}

TEST_F(Import, KnownBuffersAreAccepted) {
  ForeignWeights gpt2 = foreign_weights(tiny_gpt2(), 6);
  gpt2["transformer.h.0.attn.bias"] = {{1, 1, 2, 2}, {1, 0, 1, 1}};
  gpt2["transformer.h.1.attn.masked_bias"] = {{}, {-1e4f}};
  write_foreign(folder_ / "model.safetensors", gpt2);
  EXPECT_EQ(message(tiny_gpt2(), folder_), "it was accepted");
  ForeignWeights llama = foreign_weights(tiny_llama(false), 6);
  llama["model.layers.1.self_attn.rotary_emb.inv_freq"] = {{2}, {1, 0.1f}};
  llama["model.rotary_emb.inv_freq"] = {{2}, {1, 0.1f}};
  write_foreign(folder_ / "model.safetensors", llama);
  EXPECT_EQ(message(tiny_llama(false), folder_), "it was accepted");
}

TEST_F(Import, TiedHeadMustEqualTheEmbedding) {
  for (const spec::ModelSpec& model : {tiny_llama(true), tiny_gpt2()}) {
    const bool gpt2 = model.architecture == spec::Architecture::gpt2;
    ForeignWeights weights = foreign_weights(model, 7);
    weights["lm_head.weight"] =
        weights.at(gpt2 ? "transformer.wte.weight" : "model.embed_tokens.weight");
    write_foreign(folder_ / "model.safetensors", weights);
    EXPECT_EQ(message(model, folder_), "it was accepted");
    float& value = weights["lm_head.weight"].values[9];
    value = std::nextafter(value, 1.0f);
    write_foreign(folder_ / "model.safetensors", weights);
    EXPECT_THAT(message(model, folder_),
                AllOf(HasSubstr("lm_head.weight differs from"), HasSubstr("tied_embeddings")));
  }
}

TEST_F(Import, StoredTypeIsFound) {
  const ForeignWeights weights = foreign_weights(tiny_llama(true), 9);
  const Path path = folder_ / "model.safetensors";
  for (const DType dtype : {DType::f32, DType::bf16}) {
    write_foreign(path, weights, dtype);
    EXPECT_EQ(huggingface_dtype(folder_).value(), dtype);
  }
  const double value = 1;
  const float other = 1;
  const TensorToStore mixed[] = {{"a", {&other, DType::f32, {1}}, {1}},
                                 {"b", {&value, DType::f64, {1}}, {1}}};
  ASSERT_TRUE(write_safetensors(path, mixed, {}));
  EXPECT_EQ(huggingface_dtype(path).value(), DType::f64);
}

TEST_F(Import, OtherArchitecturesAreRefused) {
  spec::ModelSpec model = tiny_llama(false);
  write_foreign(folder_ / "model.safetensors", foreign_weights(model, 8));
  model.architecture = spec::Architecture::mixtral;
  EXPECT_THAT(message(model, folder_), HasSubstr("mixtral architecture cannot be imported"));
  spec::ModelSpec odd = tiny_gpt2();
  odd.tied_embeddings = false;
  EXPECT_THAT(message(odd, folder_), HasSubstr("no place for our lm_head.weight"));
}

}  // namespace
}  // namespace fivefold::checkpoint
