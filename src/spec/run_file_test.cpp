#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "spec/schema.hpp"

namespace fivefold::spec {
namespace {

using testing::Eq;
using testing::HasSubstr;

const char* const good = R"([model]
name = "tiny_llama"
[[data.sources]]
path = "text"
[training]
seq_len = 64
steps = 100
micro_batch_size = 2
global_batch_size = 8
)";

Result<RunSpec> parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_run(text, "run.toml", overrides);
}

// The whole message of a run that must be refused.
std::string refused(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const Result<RunSpec> run = parse(text, overrides);
  if (run) return "(accepted)";
  EXPECT_EQ(run.error().code, Error::Code::invalid_input);
  return run.error().message;
}
std::string refused_with(const std::string& option) { return refused(good, {option}); }

RunSpec accepted(const std::vector<std::string>& overrides) {
  const Result<RunSpec> run = parse(good, overrides);
  if (!run) ADD_FAILURE() << run.error().message;
  return run.value_or(RunSpec{});
}

TEST(RunFile, ReadsValuesAndKeepsDefaults) {
  const RunSpec run = accepted({});
  EXPECT_EQ(run.model.name, "tiny_llama");
  EXPECT_EQ(run.model.dim, 64);
  EXPECT_EQ(run.training.seq_len, 64);
  EXPECT_EQ(run.training.global_batch_size, 8);
  EXPECT_EQ(run.data.sources.at(0).path, "text");
  EXPECT_EQ(run.optimizer.lr, OptimizerSpec{}.lr);
  EXPECT_EQ(run.training.mixed_precision_reduce, "float32");
}

TEST(RunFile, TellsAllFaultsAtOnceWithFileAndLine) {
  const std::string text = refused(R"([model]
name = "tiny_llama"
[training]
seq_len = "long"
steps = 0
max_norm = -1.5
[optimizer]
lr = 0
nmae = "AdamW"
[trainig]
x = 1
[metrics]
enable_wandb = true
)");
  EXPECT_THAT(text, HasSubstr("run.toml:4: training.seq_len = \"long\": is a text; use an integer "
                              "(1 to 4194304)"));
  EXPECT_THAT(text, HasSubstr("run.toml:5: training.steps = 0: is too small; use 1 to 1000000000"));
  EXPECT_THAT(text, HasSubstr("run.toml:6: training.max_norm = -1.5: is too small; use 0 to 1"));
  EXPECT_THAT(text,
              HasSubstr("run.toml:8: optimizer.lr = 0: is too small; use above 0, at most 100"));
  EXPECT_THAT(text, HasSubstr("run.toml:9: optimizer.nmae = \"AdamW\": is unknown; did you mean "
                              "optimizer.name?"));
  EXPECT_THAT(text, HasSubstr("run.toml:10: [trainig]: is an unknown section; did you mean "
                              "[training]?"));
  EXPECT_THAT(text, HasSubstr("run.toml:13: metrics.enable_wandb = true: Weights & Biases is not "
                              "supported; metrics are written as JSON lines; use false"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6) << text;
}

TEST(RunFile, MissingKeysAreNamed) {
  const std::string text = refused("[model]\nname = \"tiny_llama\"\n");
  EXPECT_THAT(text, HasSubstr("run.toml: training.seq_len = 0: is missing; use 1 to 4194304"));
  EXPECT_THAT(text, HasSubstr("run.toml: training.steps = 0: is missing"));
  EXPECT_THAT(refused("[training]\nsteps = 1\nseq_len = 1\n"),
              Eq("run.toml: model.name is missing; use a preset (\"llama3_8b\"), the path of a "
                 "preset file or of a "
                 "config.json, or give model.architecture and the sizes"));
}

TEST(RunFile, SyntaxErrorsHaveALine) {
  EXPECT_THAT(refused("[model]\nname = \n"), HasSubstr("run.toml:2: is not TOML"));
  EXPECT_THAT(refused("[model]\nname = \"a\"\nname = \"b\"\n"),
              HasSubstr("run.toml:3: is not TOML"));
  EXPECT_THAT(refused("\xff\xfe"), HasSubstr("is not TOML"));
}

TEST(RunFile, KeysOutsideOfASectionAreRefused) {
  EXPECT_THAT(refused("seq_length = 3\n"),
              HasSubstr("run.toml:1: seq_length = 3: stands outside of a section; is unknown; use "
                        "training.seq_len"));
  const Result<RunSpec> run = parse("dump_folder = \"x\"\n" + std::string(good));
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->dump_folder, "x");  // the two that may
  EXPECT_THAT(refused("dump_folder = \"x\"\n[job]\ndump_folder = \"y\"\n" + std::string(good)),
              HasSubstr("is given twice"));
}

TEST(RunFile, NestingCannotExhaustTheStack) {
  std::string dots = "a", brackets = "a = ";
  for (int i = 0; i < 100000; ++i) dots += ".a", brackets += "[";
  EXPECT_THAT(refused(dots + " = 1"), HasSubstr("run.toml:1: nests too deeply"));
  EXPECT_THAT(refused(brackets), HasSubstr("run.toml:1: nests too deeply"));
  EXPECT_THAT(refused("x = [ \"\"\"a\"\"\"\", {" + dots + " = 1} ]"),
              HasSubstr("nests too deeply"));
  EXPECT_THAT(refused("# " + dots + "\n" + good + "x = '" + dots + "'"),
              Not(HasSubstr("nests too deeply")));
  EXPECT_THAT(refused(std::string(2 << 20, '\n')), HasSubstr("too many for a run file"));
}

TEST(RunFile, ManyFaultsAreCountedNotListed) {
  std::string text = "[training]\n";
  for (int i = 0; i < 5000; ++i) text += "k" + std::to_string(i) + " = 1\n";
  const std::string message = refused(text);
  EXPECT_THAT(message, HasSubstr(" more"));
  EXPECT_LT(std::count(message.begin(), message.end(), '\n'), 110);
}

TEST(RunFile, OneFaultDoesNotBringAnother) {
  // The batch cannot be judged by a micro batch that is no number.
  EXPECT_EQ(refused_with("training.micro_batch_size=x"),
            "--training.micro_batch_size = x: is not an integer; use 1 to 1048576");
  EXPECT_EQ(refused_with("model.name=nosuch").find('\n'), std::string::npos);
}

struct Refusal {
  std::vector<std::string> options;
  const char* message;
};

TEST(RunFile, ValuesMustGoTogether) {
  const Refusal cases[] = {
      {{"training.seq_len=512"},
       "training.seq_len = 512: is longer than model.max_seq_len; use at most "
       "256"},
      {{"training.global_batch_size=7"},
       "--training.global_batch_size = 7: is not a multiple of 1 rank "
       "x micro_batch_size 2 = 2; use 6 or 8"},
      {{"dp=3"},
       "global_batch_size = 8: is not a multiple of 3 ranks x micro_batch_size 2 = 6; use 6 or "
       "12"},
      {{"dp=0"}, "--dp = 0: is no number of ranks; use -1"},
      {{"lr_scheduler.warmup_steps=101"}, "is more than training.steps; use at most 100"},
      {{"lr_scheduler.warmup_steps=60", "lr_scheduler.decay_ratio=0.5"},
       "--lr_scheduler.decay_ratio = 0.5: makes 50 of 100 steps fall, and the rise takes 60; use "
       "at most "
       "0.4"},
      {{"lr_scheduler.decay_ratio=0"}, "is too small; use above 0, at most 1"},
      {{"lr_scheduler.decay_ratio=1.1"}, "is too large; use above 0, at most 1"},
      {{"model.dim=65"},
       "--model.dim = 65: is not a multiple of the 4 heads; use 64 or 68, or give "
       "model.head_dim"},
      {{"model.num_heads=7"},
       "--model.num_heads = 7: does not divide model.dim 64; use 1, 2, 4, 8, 16, "
       "32 or 64, or give model.head_dim"},
      {{"model.num_kv_heads=3"}, "does not divide the 4 query heads; use 1, 2 or 4"},
      {{"model.head_dim=15"}, "is odd, and rotary positions turn pairs; use 14 or 16"},
      {{"model.positions=learned"}, "llama has rotary positions; use \"rope\""},
      {{"model.embedding_dropout=0.1"}, "is for gpt2 only; use 0"},
      {{"model.top_k=2"}, "--model.top_k = 2: needs model.num_experts above 0, or leave it out"},
      {{"model.num_experts=4"}, "is for mixtral and deepseek_v3 only; use 0"},
      {{"model.rope_scaling=yarn"}, "is not supported for this architecture"},
      {{"model.rope_scaling=linear"}, "comes later; use \"none\""},
      {{"model.rope_scaling_factor=8"}, "needs model.rope_scaling"},
      {{"training.mixed_precision_param=float64", "training.mixed_precision_reduce=float32"},
       "does not go with float64 parameters; use \"float64\""},
      {{"training.mixed_precision_param=float16"},
       "comes later; use \"float32\", \"bfloat16\", "
       "\"float64\""},
      {{"activation_checkpoint.selective_ac_option=2"}, "needs activation_checkpoint.mode"},
      {{"activation_checkpoint.mode=selective", "activation_checkpoint.selective_ac_option=0"},
       "is not a way to choose"},
      {{"data.validation_share=0"}, "validation.enable = true: has no data"},
      {{"checkpoint.enable=false", "checkpoint.load_step=3"}, "needs checkpoint.enable"},
      {{"job.dump_folder="}, "is empty; use a folder"},
      {{"data.sources="}, "is empty; use the path"},
      {{"debug.seed=-1"}, "is too small"},
      {{"training.steps=1000000000", "training.seq_len=256", "training.global_batch_size=1048576",
        "training.micro_batch_size=1048576", "model.max_seq_len=16777216",
        "training.seq_len=4194304"},
       "training.seq_len is set already"},
      {{"training.steps=1000000000", "training.global_batch_size=1048576",
        "model.max_seq_len=16777216", "training.seq_len=4194304"},
       "makes too many tokens"},
      {{"model.dim=1048576", "model.num_heads=64", "model.hidden_dim=4194304",
        "model.num_layers=4096"},
       "parameters with these sizes"},
  };
  for (const Refusal& c : cases) EXPECT_THAT(refused(good, c.options), HasSubstr(c.message));
}

TEST(RunFile, WhatComesLaterIsRefusedAtAnyOtherValue) {
  for (const Key& key : later_keys()) {
    const std::string name = key.dotted();
    std::string neutral = shown(*key.neutral);
    std::erase(neutral, '"');
    EXPECT_EQ(parse(good, {name + "=" + neutral}).has_value(), true) << name;
    const std::string other = key.is_integer()   ? "7"
                              : key.is_real()    ? "0.7"
                              : key.is_boolean() ? (neutral == "true" ? "false" : "true")
                                                 : "other";
    EXPECT_THAT(
        refused_with(name + "=" + other),
        HasSubstr("--" + name + " = " + other + ": " + key.later + "; use " + shown(*key.neutral)));
  }
}

TEST(RunFile, OtherOptimizersComeLater) {
  EXPECT_THAT(refused_with("--optimizer.name=Muon"),
              HasSubstr("--optimizer.name = Muon: comes later; use \"AdamW\""));
  EXPECT_THAT(refused_with("--optimizer=adam"), HasSubstr("is not one of the choices"));
  EXPECT_EQ(accepted({"--optimizer=adamw"}).optimizer.name, "AdamW");
}

TEST(Overrides, SetAnyKeyByItsNameOrAnAlias) {
  EXPECT_EQ(accepted({"--training.steps=7", "--lr=1e-3"}).optimizer.lr, 1e-3);
  EXPECT_EQ(accepted({"--seq-length=32"}).training.seq_len, 32);
  EXPECT_EQ(accepted({"--seq_length=32"}).training.seq_len, 32);
  EXPECT_EQ(accepted({"train-iters=9"}).training.steps, 9);
  EXPECT_EQ(accepted({"--micro-batch-size=4", "--global-batch-size=16"}).training.micro_batch_size,
            4);
  EXPECT_EQ(accepted({"--clip-grad=0.5"}).training.max_norm, 0.5);
  EXPECT_EQ(accepted({"--save=there", "--load=here"}).checkpoint.folder, "there");
  EXPECT_EQ(accepted({"--load=here"}).checkpoint.initial_load_path, "here");
  EXPECT_EQ(accepted({"--dp=2"}).parallelism.data_parallel_replicate_degree, 2);
  EXPECT_EQ(accepted({"--distributed-timeout-minutes=2"}).comm.train_timeout_seconds, 120);
  EXPECT_EQ(accepted({"--debug.detect_anomaly"}).debug.detect_anomaly, true);
  EXPECT_EQ(accepted({"--data.validation_path="}).data.validation_path, "");
  EXPECT_EQ(accepted({"--model.vocab_size=1000"}).model.vocab_size, 1000);
}

TEST(Overrides, EveryKnownAliasReachesItsKey) {
  for (const std::vector<Key>* keys : {&run_keys(), &later_keys()}) {
    for (const Key& key : *keys) {
      for (const Alias& alias : key.aliases) {
        const std::string text = refused_with("--" + alias.name + "=?");
        const bool any_text = key.is_text() && key.choices.empty() && !key.neutral;
        if (any_text) {
          EXPECT_THAT(text, Not(HasSubstr("is unknown"))) << key.dotted();
        } else {
          EXPECT_THAT(text, HasSubstr("--" + alias.name + " = ?: ")) << key.dotted();
        }
      }
    }
  }
}

TEST(Overrides, AxesOfOtherTrainersAreRefusedWithTheirNames) {
  EXPECT_EQ(accepted({"--tensor-model-parallel-size=1"}).training.steps, 100);
  EXPECT_THAT(refused_with("--tp=2"), HasSubstr("--tp = 2: tensor parallelism comes later; use 1"));
  EXPECT_THAT(refused_with("--data-parallel-sharding-strategy=optim"),
              HasSubstr("sharded data parallelism comes later; use 0"));
  EXPECT_EQ(accepted({"--data-parallel-sharding-strategy=no_shard"}).training.steps, 100);
  EXPECT_THAT(refused_with("--async-save"), HasSubstr("asynchronous saving comes later"));
  EXPECT_THAT(refused_with("--fp8-recipe=delayed"), HasSubstr("quantized training comes later"));
}

TEST(Overrides, FaultsNameTheOption) {
  EXPECT_THAT(refused_with("--training.stepz=3"),
              HasSubstr("--training.stepz: is unknown; did you mean training.steps?"));
  EXPECT_THAT(refused_with("--steps"),
              HasSubstr("--steps: needs a value; use --steps=VALUE (1 to"));
  EXPECT_THAT(refused(good, {"--lr=1e-3", "--optimizer.lr=1e-3"}),
              HasSubstr("--optimizer.lr = 1e-3: optimizer.lr is set already, by --lr"));
  EXPECT_THAT(refused_with("--training.steps=1e3"), HasSubstr("is not an integer"));
  EXPECT_THAT(refused_with("--training.steps=99999999999999999999"), HasSubstr("is out of range"));
  EXPECT_THAT(refused_with("--lr=nan"), HasSubstr("is not a finite number"));
  EXPECT_THAT(refused_with("--data.tokenizer=\xff"), HasSubstr("is not UTF-8"));
  EXPECT_THAT(refused_with("--min-lr=1e-5"), HasSubstr("use lr_scheduler.min_lr_factor"));
  EXPECT_THAT(refused_with("--local_batch_size=4"), HasSubstr("use training.micro_batch_size"));
  EXPECT_THAT(refused_with("="), HasSubstr("is unknown"));
}

TEST(Overrides, SourcesAreReplacedThenAdded) {
  const RunSpec run = accepted({"--data.sources=a", "--data.sources=b"});
  ASSERT_EQ(run.data.sources.size(), 2u);
  EXPECT_EQ(run.data.sources[0].path, "a");
  EXPECT_EQ(run.data.sources[1].path, "b");
}

TEST(Sources, KnowTheirKeys) {
  const std::string head = std::string(good) + "[[data.sources]]\n";
  const Result<RunSpec> run = parse(head + "path = \"more\"\nweight = 3\nformat = \"jsonl\"\n");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->data.sources.at(1).weight, 3);
  EXPECT_EQ(run->data.sources.at(0).weight, 1);
  EXPECT_THAT(refused(head + "path = \"x\"\nweight = 0\n"), HasSubstr("data.sources.weight = 0: "));
  EXPECT_THAT(refused(head + "weight = 1\n"), HasSubstr("data.sources.path: is missing"));
  EXPECT_THAT(refused(head + "path = \"x\"\nwieght = 1\n"),
              HasSubstr("did you mean data.sources.weight?"));
  EXPECT_THAT(refused("[data]\nsources = \"x\"\n"), HasSubstr("is not a list of tables"));
}

TEST(Model, SectionChangesSingleValuesOfAPreset) {
  const RunSpec run = accepted({"model.num_layers=3", "model.dim=96"});
  EXPECT_EQ(run.model.num_layers, 3);
  EXPECT_EQ(run.model.head_dim, 24);  // follows dim, as the preset does not fix it
  EXPECT_EQ(run.model.hidden_dim, 176);
}

TEST(Model, SectionCanDescribeItInFull) {
  const std::string text = R"([model]
architecture = "gpt2"
name = "llama3_8b"
vocab_size = 300
dim = 32
num_layers = 1
num_heads = 2
hidden_dim = 128
max_seq_len = 64
[training]
seq_len = 64
steps = 1
)";
  const Result<RunSpec> run = parse(text);
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->model.name, "llama3_8b");  // a label only
  EXPECT_EQ(run->model.norm, Norm::layernorm);
  EXPECT_TRUE(run->model.qkv_bias && run->model.tied_embeddings);
  EXPECT_THAT(refused(text, {"model.norm=rmsnorm"}), HasSubstr("gpt2 has LayerNorm"));
  EXPECT_THAT(refused(text, {"model.num_kv_heads=1"}), HasSubstr("use 2"));
}

TEST(Model, MixturesLoadAndOnlyTrainingRefusesThem) {
  for (const char* name : {"mixtral_8x7b", "deepseek_v3"}) {
    const RunSpec run = accepted({std::string("model.name=") + name});
    const Status trainable = check_trainable(run);
    ASSERT_FALSE(trainable);
    EXPECT_THAT(trainable.error().message, HasSubstr("training it comes later"));
  }
  RunSpec run = accepted({});
  EXPECT_TRUE(check_trainable(run));
  run.data.sources.clear();
  EXPECT_FALSE(check_trainable(run));
}

TEST(RunFile, PrecisionOfGradientsFollowsParameters) {
  EXPECT_EQ(accepted({"training.mixed_precision_param=float64"}).training.mixed_precision_reduce,
            "float64");
  EXPECT_EQ(accepted({"training.mixed_precision_param=bfloat16"}).training.mixed_precision_reduce,
            "float32");
}

TEST(RunFile, EveryShippedOneIsAccepted) {
  int files = 0;
  const Path folder = Path(FIVEFOLD_SOURCE_DIR) / "configs/runs";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const Result<RunSpec> run = load_run(entry.path().string(), {});
    EXPECT_TRUE(run) << run.error().message;
    EXPECT_TRUE(run && check_trainable(*run)) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 3);
}

TEST(RunFile, ReferenceIsUpToDate) {
  const Path path = Path(FIVEFOLD_SOURCE_DIR) / "docs/run_file.md";
  if (std::getenv("UPDATE_REFERENCE")) {
    ASSERT_TRUE(write_file(path, run_file_reference()));
  }
  const Result<std::string> text = read_file(path);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_TRUE(*text == run_file_reference())
      << "docs/run_file.md differs from the table of keys; run spec_test with UPDATE_REFERENCE=1";
}

}  // namespace
}  // namespace fivefold::spec
