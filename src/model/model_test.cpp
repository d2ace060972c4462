#include "model/model.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "model/testing.hpp"
#include "step/memory_ledger.hpp"

namespace fivefold::model {
namespace {

using testing::RandomBatch;
using testing::Rig;

struct ModelCase {
  const char* name;
  spec::ModelSpec spec;
  bool packed;
};

spec::ModelSpec dropped(spec::ModelSpec m) {
  m.embedding_dropout = 0.1;
  m.attention_dropout = 0.2;
  m.residual_dropout = 0.15;
  return m;
}

std::vector<ModelCase> model_cases() {
  return {{"llama", testing::small_llama(), false},
          {"llama_packed", testing::small_llama(), true},
          {"llama_every_option", testing::full_llama(), true},
          {"gpt2", testing::small_gpt2(), false},
          {"gpt2_dropout", dropped(testing::small_gpt2()), true}};
}

class ModelTest : public ::testing::TestWithParam<ModelCase> {};
INSTANTIATE_TEST_SUITE_P(All, ModelTest, ::testing::ValuesIn(model_cases()),
                         [](const auto& each) { return each.param.name; });

// Every parameter tensor: the gradient along a random direction against central differences.
TEST_P(ModelTest, GradientsEqualFiniteDifferences) {
  for (const kernels::Backend backend : {kernels::Backend::reference, kernels::Backend::cpu}) {
    Rig rig(GetParam().spec, DType::f64, "none", "op", 2, backend);
    const RandomBatch batch(GetParam().spec, 2, 9, 1, GetParam().packed);
    rig.run(batch);
    for (const Parameter& p : rig.parameters.all()) {
      const auto value = rig.parameters.value(p).flat<double>();
      const auto gradient = rig.parameters.gradient(p).flat<double>();
      const Random random(77, stream_of(p.spec.name));
      double analytic = 0, norm = 0;
      std::vector<double> direction(value.size());
      for (size_t i = 0; i < direction.size(); ++i) {
        direction[i] = random.normal(i);
        analytic += direction[i] * gradient[i];
        norm += gradient[i] * gradient[i];
      }
      const double h = 1e-5;
      const auto loss_at = [&](double step) {
        for (size_t i = 0; i < value.size(); ++i) value[i] += step * direction[i];
        Tape tape;
        const double loss = rig.model.forward(batch.input(), tape);
        for (size_t i = 0; i < value.size(); ++i) value[i] -= step * direction[i];
        return loss;
      };
      const double numeric = (loss_at(h) - loss_at(-h)) / (2 * h);
      EXPECT_NEAR(analytic, numeric, 1e-6 * std::sqrt(norm) + 1e-7) << p.spec.name;
      EXPECT_GT(norm, 0) << p.spec.name;
    }
  }
}

std::vector<float> gradients_of(const Rig& rig) {
  const auto g = rig.parameters.gradients().flat<float>();
  return {g.begin(), g.end()};
}

TEST_P(ModelTest, RecomputationGivesTheSameBits) {
  const RandomBatch batch(GetParam().spec, 2, 17, 2, GetParam().packed);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Rig none(GetParam().spec, dtype);
    const double loss = none.run(batch);
    int64_t peak = none.memory.peak().of(Category::activation);
    for (const char* mode : {"selective", "full"}) {
      Rig rig(GetParam().spec, dtype, mode);
      EXPECT_EQ(rig.run(batch), loss) << mode;
      EXPECT_EQ(gradients_of(rig), gradients_of(none)) << mode;
      const int64_t now = rig.memory.peak().of(Category::activation);
      EXPECT_LT(now, peak) << mode << " must save memory over the mode before it";
      peak = now;
    }
    Rig every_second(GetParam().spec, dtype, "selective", "2");
    EXPECT_EQ(every_second.run(batch), loss);
    EXPECT_EQ(gradients_of(every_second), gradients_of(none));
  }
}

// The ledger predicts the counters of a real step, byte for byte.
TEST_P(ModelTest, MemoryIsWhatTheLedgerSays) {
  for (const char* precision : {"float32", "bfloat16", "float64"}) {
    for (const auto& [mode, option] : std::vector<std::pair<const char*, const char*>>{
             {"none", "op"}, {"selective", "op"}, {"selective", "2"}, {"full", "op"}}) {
      spec::RunSpec run;
      run.model = GetParam().spec;
      run.training.seq_len = 13;
      run.training.mixed_precision_param = precision;
      run.activation_checkpoint = {mode, option};
      const spec::BatchPlan plan{.micro_batch_size = 3};
      const step::MemoryLedger ledger = step::memory_of(run, plan);
      const DType dtype = std::string(precision) == "bfloat16"  ? DType::bf16
                          : std::string(precision) == "float64" ? DType::f64
                                                                : DType::f32;
      Rig rig(GetParam().spec, dtype, mode, option);
      rig.memory.reset_peak();
      rig.run(RandomBatch(GetParam().spec, 3, 13, 4, GetParam().packed));
      EXPECT_EQ(rig.memory.peak().of(Category::activation), ledger.activation)
          << precision << " " << mode << " " << option << ", peak in " << ledger.peak_moment;
      EXPECT_EQ(rig.memory.peak().of(Category::parameter), ledger.parameter);
      EXPECT_EQ(rig.memory.peak().of(Category::gradient), ledger.gradient);
      EXPECT_EQ(rig.memory.live().of(Category::activation), 0);
    }
  }
}

TEST_P(ModelTest, GradientsAddUpOverMicrobatches) {
  const spec::ModelSpec& spec = GetParam().spec;
  Rig rig(spec, DType::f64), twice(spec, DType::f64);
  const RandomBatch a(spec, 2, 9, 5, GetParam().packed);
  rig.run(a);
  twice.run(a);
  twice.run(a);
  const auto once = rig.parameters.gradients().flat<double>();
  const auto sum = twice.parameters.gradients().flat<double>();
  for (size_t i = 0; i < once.size(); ++i) {
    ASSERT_NEAR(2 * once[i], sum[i], 1e-12 * (1 + std::abs(once[i])));
  }
}

TEST_P(ModelTest, ReadyNamesEachParameterOnceAfterItsGradientIsFinal) {
  Rig rig(GetParam().spec, DType::f32);
  const RandomBatch batch(GetParam().spec, 2, 9, 6, GetParam().packed);
  std::vector<std::vector<float>> seen(rig.parameters.all().size());
  Tape tape;
  rig.model.forward(batch.input(), tape);
  rig.model.backward(batch.input(), tape, [&](size_t first, size_t last) {
    for (size_t i = first; i <= last; ++i) {
      EXPECT_TRUE(seen[i].empty()) << "twice";
      const auto g = rig.parameters.gradient(rig.parameters.all()[i]).flat<float>();
      seen[i].assign(g.begin(), g.end());
    }
  });
  for (size_t i = 0; i < seen.size(); ++i) {
    const auto g = rig.parameters.gradient(rig.parameters.all()[i]).flat<float>();
    EXPECT_EQ(seen[i], std::vector<float>(g.begin(), g.end()))
        << rig.parameters.all()[i].spec.name;
  }
}

// Token by token with a cache, or in pieces, the logits are those of the whole text.
TEST_P(ModelTest, CachedGenerationEqualsTheWholeForward) {
  spec::ModelSpec spec = GetParam().spec;
  Rig rig(spec, DType::f64);
  const RandomBatch batch(spec, 1, 12, 8, false);
  const Tensor whole = rig.model.logits(batch.input(false));
  std::vector<KvCache> caches = rig.model.make_caches(1, 12);
  int64_t past = 0;
  for (const int64_t piece : {5, 1, 1, 3, 2}) {
    Input input = batch.input(false);
    input.seq_len = piece;
    input.tokens = input.tokens.slice(0, past, past + piece);
    input.positions = input.positions.slice(0, past, past + piece);
    input.document_start = {};
    const Tensor logits = rig.model.next_logits(input, caches);
    past += piece;
    for (int64_t v = 0; v < spec.vocab_size; ++v) {
      EXPECT_NEAR(logits.flat<double>()[size_t(v)],
                  whole.flat<double>()[size_t((past - 1) * spec.vocab_size + v)], 1e-10);
    }
  }
}

TEST_P(ModelTest, ThreadsDoNotChangeTheBits) {
  const RandomBatch batch(GetParam().spec, 2, 17, 2, GetParam().packed);
  Rig one(GetParam().spec, DType::f32, "none", "op", 1);
  const double loss = one.run(batch);
  for (const int threads : {2, 3}) {
    Rig rig(GetParam().spec, DType::f32, "none", "op", threads);
    EXPECT_EQ(rig.run(batch), loss);
    EXPECT_EQ(gradients_of(rig), gradients_of(one)) << threads;
  }
}

TEST(Model, NamesThePartThatIsNotFinite) {
  Rig rig(testing::small_llama(), DType::f32);
  const RandomBatch batch(testing::small_llama(), 1, 8, 1, false);
  EXPECT_EQ(rig.model.first_not_finite(batch.input()), "");
  rig.parameters.value(rig.parameters.at("model.layers.1.mlp.down_proj.weight")).as<float>()[3] =
      std::nanf("");
  EXPECT_EQ(rig.model.first_not_finite(batch.input()), "model.layers.1");
}

TEST(Model, DropoutActsInTrainingOnlyAndDependsOnTheTokenNotOnTheBatch) {
  const spec::ModelSpec spec = dropped(testing::small_gpt2());
  Rig rig(spec, DType::f64);
  const RandomBatch both(spec, 2, 8, 1, false);
  const Tensor plain = rig.model.logits(both.input(false));
  const Tensor masked = rig.model.logits(both.input(true));
  EXPECT_NE(plain.flat<double>()[0], masked.flat<double>()[0]);
  // The second sequence alone gets the masks that it got beside the first.
  Input second = both.input(true);
  second.sequences = 1;
  second.tokens = second.tokens.slice(0, 8, 16);
  second.positions = second.positions.slice(0, 8, 16);
  second.document_start = second.document_start.slice(0, 1, 2);
  second.token_index = second.token_index.slice(0, 8, 16);
  const Tensor alone = rig.model.logits(second);
  for (int64_t i = 0; i < alone.count(); ++i) {
    EXPECT_NEAR(alone.flat<double>()[size_t(i)],
                masked.flat<double>()[size_t(alone.count() + i)], 1e-12);
  }
}

}  // namespace
}  // namespace fivefold::model
