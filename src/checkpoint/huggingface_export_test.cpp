#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "checkpoint/huggingface.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/test_models.hpp"

namespace fivefold::checkpoint {
namespace {

using testing::HasSubstr;

class Export : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = Path(testing::TempDir()) / fmt::format("export_test.{}", ::getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "in");
    out_ = folder_ / "out";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  ParameterSet set_of(const spec::ModelSpec& model, DType dtype) {
    return ParameterSet(memory_, spec::parameters_of(model), dtype, false);
  }
  static std::string text_of(const Path& path) { return read_file(path).value(); }

  Memory memory_;
  Path folder_, out_;
};

// Files as Hugging Face writes them (names sorted, {"format": "pt"}) come back byte for byte, in
// the file's own dtype, whatever wider or equal type the parameters are held in.
TEST_F(Export, ImportThenExportIsTheSameFile) {
  for (const spec::ModelSpec& model : {tiny_llama(false), tiny_llama(true), tiny_gpt2()}) {
    for (const DType file_dtype : {DType::f32, DType::bf16}) {
      const Path in = folder_ / "in" / "model.safetensors";
      write_foreign(in, foreign_weights(model, 1), file_dtype);
      for (const DType held : {DType::f32, DType::f64, DType::bf16}) {
        ParameterSet set = set_of(model, held);
        const Status imported = import_huggingface(in, model, set);
        ASSERT_TRUE(imported) << imported.error().message;
        const Status exported = export_huggingface(out_, model, set, {.dtype = file_dtype}, "");
        ASSERT_TRUE(exported) << exported.error().message;
        // The fixtures' values are bf16's, so that bf16 parameters hold them too.
        EXPECT_EQ(text_of(out_ / "model.safetensors"), text_of(in))
            << model.name << " of " << name_of(file_dtype) << " held in " << name_of(held);
      }
    }
  }
}

TEST_F(Export, FilesWithCopiesAndBuffersKeepEveryWeight) {
  const spec::ModelSpec model = tiny_gpt2();
  const ForeignWeights weights = foreign_weights(model, 2);
  ForeignWeights bare;
  for (const auto& [name, tensor] : weights) bare[name.substr(12)] = tensor;
  bare["h.0.attn.bias"] = {{1, 1, 1, 1}, {1}};
  bare["lm_head.weight"] = bare.at("wte.weight");
  write_foreign(folder_ / "in" / "model.safetensors", bare);
  ParameterSet set = set_of(model, DType::f32);
  ASSERT_TRUE(import_huggingface(folder_ / "in", model, set));
  ASSERT_TRUE(export_huggingface(out_, model, set, {}, ""));
  const auto file = SafetensorsFile::open(out_ / "model.safetensors");
  ASSERT_TRUE(file);
  ASSERT_EQ(file->tensors().size(), weights.size());
  for (const auto& [name, tensor] : weights) {
    const StoredTensor& stored = file->tensors().at(name);
    EXPECT_EQ(stored.shape, tensor.shape) << name;
    EXPECT_EQ(std::memcmp(stored.bytes.data(), tensor.values.data(), stored.bytes.size()), 0)
        << name;
  }
}

TEST_F(Export, LargeModelsAreShardedAndReadBack) {
  for (const spec::ModelSpec& model : {tiny_llama(false), tiny_gpt2()}) {
    std::filesystem::remove_all(out_);
    write_foreign(folder_ / "in" / "model.safetensors", foreign_weights(model, 3));
    ParameterSet set = set_of(model, DType::f32);
    ASSERT_TRUE(import_huggingface(folder_ / "in", model, set));
    const int64_t limit = set.count() * 4 / 3;
    ASSERT_TRUE(export_huggingface(out_, model, set, {.max_shard_bytes = limit}, ""));
    int64_t total = 0;
    for (const auto& entry : std::filesystem::directory_iterator(out_)) {
      if (entry.path().extension() != ".safetensors") continue;
      const auto shard = SafetensorsFile::open(entry.path());
      ASSERT_TRUE(shard) << shard.error().message;
      EXPECT_LE(int64_t(shard->data().size()), limit);
      EXPECT_EQ(shard->metadata().at("format"), "pt");
      total += int64_t(shard->data().size());
    }
    EXPECT_EQ(total, set.count() * 4);
    EXPECT_THAT(text_of(out_ / "model.safetensors.index.json"),
                HasSubstr(fmt::format("\"total_size\": {}", total)));
    ParameterSet back = set_of(model, DType::f32);
    const Status imported = import_huggingface(out_, model, back);
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_EQ(hash_of(back.values()), hash_of(set.values()));
  }
}

TEST_F(Export, ATensorLargerThanAShardGetsAFileOfItsOwn) {
  const spec::ModelSpec model = tiny_llama(true);
  ParameterSet set = set_of(model, DType::f32);
  initialize(set, 1, set.values());
  ASSERT_TRUE(export_huggingface(out_, model, set, {.max_shard_bytes = 1}, ""));
  ParameterSet back = set_of(model, DType::f32);
  ASSERT_TRUE(import_huggingface(out_, model, back));
  EXPECT_EQ(hash_of(back.values()), hash_of(set.values()));
}

TEST_F(Export, ConfigDescribesTheModelAndTheDtype) {
  for (const spec::ModelSpec& model : {tiny_llama(true), tiny_gpt2()}) {
    std::filesystem::remove_all(out_);
    ParameterSet set = set_of(model, DType::f32);
    initialize(set, 1, set.values());
    ASSERT_TRUE(export_huggingface(out_, model, set, {.dtype = DType::bf16}, ""));
    auto back = spec::load_model((out_ / "config.json").string());
    ASSERT_TRUE(back) << back.error().message;
    back->name = model.name;  // not part of a config
    EXPECT_EQ(*back, model);
    EXPECT_THAT(text_of(out_ / "config.json"), HasSubstr("\"torch_dtype\": \"bfloat16\""));
  }
}

TEST_F(Export, TokenizerIsCopiedUnderTheNameThatReadersExpect) {
  const spec::ModelSpec model = tiny_llama(true);
  ParameterSet set = set_of(model, DType::f32);
  initialize(set, 1, set.values());
  ASSERT_TRUE(write_file(folder_ / "mine.json", "{\"a\":1}"));
  ASSERT_TRUE(export_huggingface(out_, model, set, {}, (folder_ / "mine.json").string()));
  EXPECT_EQ(text_of(out_ / "tokenizer.json"), "{\"a\":1}");
  // Again, from the copy itself: it must survive.
  ASSERT_TRUE(export_huggingface(out_, model, set, {}, (out_ / "tokenizer.json").string()));
  EXPECT_EQ(text_of(out_ / "tokenizer.json"), "{\"a\":1}");
}

TEST_F(Export, AnotherExportIsNotMixedWith) {
  const spec::ModelSpec model = tiny_llama(true);
  ParameterSet set = set_of(model, DType::f32);
  initialize(set, 1, set.values());
  ASSERT_TRUE(export_huggingface(out_, model, set, {}, ""));
  ASSERT_TRUE(export_huggingface(out_, model, set, {}, ""));  // the same form replaces itself
  const Status sharded = export_huggingface(out_, model, set, {.max_shard_bytes = 2000}, "");
  ASSERT_FALSE(sharded);
  EXPECT_THAT(sharded.error().message, HasSubstr("holds model.safetensors of another export"));
  std::filesystem::remove_all(out_);
  ASSERT_TRUE(export_huggingface(out_, model, set, {.max_shard_bytes = 2000}, ""));
  ASSERT_TRUE(export_huggingface(out_, model, set, {.max_shard_bytes = 9000}, ""));
  ParameterSet back = set_of(model, DType::f32);
  const Status imported = import_huggingface(out_, model, back);
  EXPECT_TRUE(imported) << imported.error().message;
  EXPECT_FALSE(export_huggingface(out_, model, set, {}, ""));
}

TEST_F(Export, WeightsThatCannotBeHeldAreRefusedAndNothingIsLeft) {
  const spec::ModelSpec model = tiny_llama(true);
  ParameterSet set = set_of(model, DType::f64);
  initialize(set, 1, set.values());
  double& weight = set.value(set.at("model.norm.weight")).as<double>()[3];
  weight = 1e300;
  Status status = export_huggingface(out_, model, set, {}, "");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message,
              HasSubstr("model.norm.weight: element [3] is 1e+300, too large for float32"));
  weight = NAN;
  status = export_huggingface(out_, model, set, {.dtype = DType::f64}, "");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("element [3] is NaN"));
  EXPECT_TRUE(std::filesystem::is_empty(out_));
}

TEST_F(Export, ModelsThatHuggingFaceCannotDescribeAreRefused) {
  spec::ModelSpec model = tiny_llama(true);
  model.qkv_bias = model.qk_norm = true;
  model.mlp_bias = true;
  ParameterSet set = set_of(model, DType::f32);
  initialize(set, 1, set.values());
  EXPECT_FALSE(export_huggingface(out_, model, set, {}, ""));
  EXPECT_FALSE(std::filesystem::exists(out_));
}

}  // namespace
}  // namespace fivefold::checkpoint
