#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "spec/checks.hpp"

namespace fivefold::spec {
namespace {

// Random legal values for every key of the table; keys that must go together are then repaired.
class Runs {
 public:
  explicit Runs(uint64_t seed) : random_(seed) {}

  RunSpec next() {
    RunSpec run;
    run.model = shape();
    for (const Key& key : run_keys()) {
      if (key.section != "model") set(key, run);
    }
    for (uint64_t n = below(3); n > 0; --n) {
      run.data.sources.emplace_back();
      for (const Key& key : source_keys()) set(key, run);
      run.data.sources.back().path += "p";
    }
    repair(run);
    return run;
  }

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  bool coin() { return below(2) == 0; }
  double real() { return std::ldexp(static_cast<double>(random_() >> 11), -53); }
  std::string text() {
    const std::string pieces[] = {"a",  "\"", "\\", "\n", "\t", "é",
                                  "漢", " ",  "#",  "'",  "=",  "\x01"};
    std::string s;
    for (uint64_t n = below(6); n > 0; --n) s += pieces[below(std::size(pieces))];
    return s;
  }

  ModelSpec shape() {
    const auto architecture = static_cast<Architecture>(below(4));
    ModelSpec m = defaults_of(architecture);
    m.name = text();
    m.num_heads = int64_t{1} << below(4);
    m.num_kv_heads = m.num_heads;
    m.dim = m.num_heads * 2 * static_cast<int64_t>(1 + below(20));
    m.vocab_size = static_cast<int64_t>(1 + below(1000)),
    m.num_layers = static_cast<int64_t>(2 + below(9));
    m.hidden_dim = static_cast<int64_t>(1 + below(500));
    m.max_seq_len = static_cast<int64_t>(1 + below(5000));
    m.norm_eps = real() + 1e-12, m.rope_theta = 1 + 1e6 * real(), m.init_std = real() + 1e-9;
    m.tied_embeddings = coin();
    if (architecture == Architecture::gpt2) {
      m.embedding_dropout = real(), m.attention_dropout = real(), m.residual_dropout = real();
    } else if (architecture == Architecture::llama) {
      m.num_kv_heads = int64_t{1} << below(static_cast<uint64_t>(std::log2(m.num_heads)) + 1);
      m.qkv_bias = coin(), m.attention_out_bias = coin(), m.mlp_bias = coin(), m.qk_norm = coin();
      m.head_dim = coin() ? 2 * static_cast<int64_t>(1 + below(50)) : 0;
      m.sliding_window = static_cast<int64_t>(below(100));
      if (coin()) m.rope_scaling = RopeScaling{1 + 9 * real(), 0.1 + real(), 2 + real(), 100};
    } else {
      m.moe = MoeSpec{
          .num_experts = 8, .top_k = static_cast<int64_t>(1 + below(4)), .moe_hidden_dim = 5};
    }
    if (architecture == Architecture::deepseek_v3) {
      m.moe->num_shared_experts = 1, m.moe->first_dense_layers = 1, m.moe->router_bias = coin();
      m.moe->num_expert_groups = 2, m.moe->num_limited_groups = 1, m.moe->score_func = "sigmoid";
      m.moe->route_scale = 1 + real(), m.moe->normalize_top_k = coin();
      m.mla = MlaSpec{static_cast<int64_t>(below(9)), 7, 6, 4, 5};
      m.num_mtp_layers = static_cast<int64_t>(below(2));
      if (coin()) m.yarn = YarnScaling{2 + real(), 32, 1, real(), real(), 64};
    }
    derive(m);
    return m;
  }

  void set(const Key& key, RunSpec& run) {
    if (const auto* integer = std::get_if<Access<int64_t>>(&key.access)) {
      const auto low = static_cast<int64_t>(key.range.minimum);
      const double high = std::min(key.range.maximum, key.range.minimum + 50);
      integer->set(run, low + static_cast<int64_t>(
                                  below(static_cast<uint64_t>(high - key.range.minimum) + 1)));
    } else if (const auto* number = std::get_if<Access<double>>(&key.access)) {
      const double low = key.range.minimum, high = std::min(key.range.maximum, low + 10);
      number->set(run, low + (high - low) * (0.001 + 0.99 * real()));
    } else if (const auto* boolean = std::get_if<Access<bool>>(&key.access)) {
      boolean->set(run, coin());
    } else {
      const auto& string = std::get<Access<std::string>>(key.access);
      string.set(run, key.choices.empty() ? text() : key.choices[below(key.choices.size())]);
    }
  }

  void repair(RunSpec& run) {
    TrainingSpec& t = run.training;
    t.seq_len = std::min(t.seq_len, run.model.max_seq_len);
    run.parallelism.data_parallel_replicate_degree =
        coin() ? -1 : static_cast<int64_t>(1 + below(4));
    const int64_t ranks = std::max<int64_t>(1, run.parallelism.data_parallel_replicate_degree);
    const int64_t accumulation = static_cast<int64_t>(1 + below(5));
    t.global_batch_size = coin() ? 0 : t.micro_batch_size * ranks * accumulation;
    t.gradient_accumulation_steps = coin() ? 0 : accumulation;
    t.mixed_precision_reduce = t.mixed_precision_param == "float64" ? "float64" : "float32";
    run.lr_scheduler.warmup_steps = 0;
    run.activation_checkpoint.selective_ac_option =
        run.activation_checkpoint.mode == "selective" && coin() ? "3" : "op";
    run.dump_folder += "d", run.checkpoint.folder += "c", run.data.tokenizer += "t";
    run.data.validation_path += "v";
    run.checkpoint.enable = true;
  }

  std::mt19937_64 random_;
};

TEST(ToToml, IsReadBackToTheSameValues) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const RunSpec run = Runs(seed).next();
    const std::string text = to_toml(run);
    const Result<RunSpec> again = parse_run(text, "effective.toml", {});
    ASSERT_TRUE(again) << "seed " << seed << "\n" << again.error().message << "\n" << text;
    EXPECT_TRUE(again->model == run.model) << "seed " << seed << "\n" << text;
    for (const Key& key : run_keys()) {
      EXPECT_TRUE(value_of(key, run) == value_of(key, *again))
          << "seed " << seed << " " << key.dotted();
    }
    ASSERT_EQ(again->data.sources.size(), run.data.sources.size()) << "seed " << seed;
    EXPECT_EQ(to_toml(*again), text) << "seed " << seed;
  }
}

TEST(ToToml, NeedsNoPreset) {
  const Result<RunSpec> run =
      parse_run("[model]\nname = \"llama3_8b\"\n[training]\nseq_len = 8\nsteps = 1\n", "r", {});
  ASSERT_TRUE(run) << run.error().message;
  std::string text = to_toml(*run);
  text.replace(text.find("llama3_8b"), 9, "renamed!!");
  const Result<RunSpec> again = parse_run(text, "e", {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(count_parameters(again->model).total(), 8'030'261'248);
}

// Every key that a run holds changes something when it changes: none is read and dropped.
TEST(Schema, EveryKeyReachesAField) {
  for (const Key& key : run_keys()) {
    RunSpec run;
    run.model.moe.emplace(), run.model.mla.emplace();
    if (key.needs.find("\"llama3\"") != std::string::npos) run.model.rope_scaling.emplace();
    if (key.needs.find("\"yarn\"") != std::string::npos && !run.model.rope_scaling)
      run.model.yarn.emplace();
    const std::string before = to_toml(run);
    const bool taken = std::visit(
        [&](const auto& access) {
          using T = typename decltype(access.get(run))::value_type;
          const T value = *access.get(run);
          if constexpr (std::is_same_v<T, std::string>) {
            for (const std::string& c : key.choices) {
              if (c != value) return access.set(run, c);
            }
            return access.set(run, value + "x");
          } else if constexpr (std::is_same_v<T, bool>) {
            return access.set(run, !value);
          } else {
            return access.set(run, value + 1);
          }
        },
        key.access);
    if (key.choices.size() == 1) continue;  // AdamW: nothing else is legal
    EXPECT_TRUE(taken) << key.dotted();
    EXPECT_NE(to_toml(run), before) << key.dotted();
  }
}

TEST(Schema, NamesAndAliasesAreUnique) {
  std::vector<std::string> seen;
  for (const std::vector<Key>* keys : {&run_keys(), &later_keys()}) {
    for (const Key& key : *keys) {
      EXPECT_FALSE(key.neutral ? key.later.empty() : key.doc.empty()) << key.dotted();
      seen.push_back(key.dotted());
      for (const Alias& alias : key.aliases) {
        seen.push_back(alias.name);
        std::replace(seen.back().begin(), seen.back().end(), '-', '_');
      }
    }
  }
  std::sort(seen.begin(), seen.end());
  const auto twice = std::adjacent_find(seen.begin(), seen.end());
  EXPECT_TRUE(twice == seen.end()) << *twice;
}

}  // namespace
}  // namespace fivefold::spec
