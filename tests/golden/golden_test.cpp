// A small Llama (plain, packed documents, every option) and a small GPT-2 against generate.py's
// vectors: imported as Hugging Face files, run forward and backward, and trained for three steps.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "checkpoint/huggingface.hpp"
#include "checkpoint/huggingface_layout.hpp"
#include "checkpoint/safetensors.hpp"
#include "model/model.hpp"
#include "optim/optimizer.hpp"

namespace fivefold {
namespace {

using checkpoint::ForeignTensor;
using checkpoint::SafetensorsFile;

// As in generate.py.
spec::ModelSpec llama() {
  spec::ModelSpec m;
  m.vocab_size = 37;
  m.dim = 32;
  m.num_layers = 2;
  m.num_heads = 4;
  m.num_kv_heads = 2;
  m.head_dim = 8;
  m.hidden_dim = 40;
  m.max_seq_len = 24;
  m.norm_eps = 1e-5;
  m.rope_theta = 10000;
  return m;
}

spec::ModelSpec llama_options() {
  spec::ModelSpec m = llama();
  m.tied_embeddings = m.qk_norm = m.qkv_bias = true;
  m.sliding_window = 7;
  m.norm_eps = 1e-6;
  m.rope_theta = 100;
  m.rope_scaling = spec::RopeScaling{.factor = 4,
                                     .low_freq_factor = 1,
                                     .high_freq_factor = 4,
                                     .original_max_position_embeddings = 64};
  return m;
}

spec::ModelSpec gpt2() {
  spec::ModelSpec m = llama();
  m.architecture = spec::Architecture::gpt2;
  m.num_kv_heads = 4;
  m.norm = spec::Norm::layernorm;
  m.positions = spec::Positions::learned;
  m.mlp = spec::Mlp::gelu;
  m.tied_embeddings = m.qkv_bias = m.attention_out_bias = m.mlp_bias = true;
  return m;
}

struct Case {
  const char* name;
  spec::ModelSpec model;
  DType dtype;
  kernels::Backend backend;
  const char* keep;
};

// Tests print the case by its name.
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.name << " in " << name_of(c.dtype)
             << (c.backend == kernels::Backend::reference ? ", reference kernels" : "")
             << ", recomputing " << c.keep;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const std::pair<const char*, spec::ModelSpec> models[] = {{"llama", llama()},
                                                            {"llama_packed", llama()},
                                                            {"llama_options", llama_options()},
                                                            {"gpt2", gpt2()}};
  for (const auto& [name, model] : models) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      all.push_back({name, model, dtype, kernels::Backend::cpu, "none"});
      all.push_back({name, model, dtype, kernels::Backend::reference, "none"});
    }
    all.push_back({name, model, DType::f32, kernels::Backend::cpu, "full"});
  }
  return all;
}

using Numbers = std::vector<double>;

Numbers numbers_of(ConstView view) {
  Numbers numbers;
  for (int64_t i = 0; i < view.count(); ++i) {
    numbers.push_back(view.dtype == DType::f64 ? view.as<double>()[i]
                                               : double(view.as<float>()[i]));
  }
  return numbers;
}

double norm_of(const Numbers& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

double distance(const Numbers& a, const Numbers& b) {
  EXPECT_EQ(a.size(), b.size());
  Numbers difference;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) difference.push_back(a[i] - b[i]);
  return norm_of(difference);
}

// One parameter's part of a tensor that is laid out as Hugging Face does: element [out, in] of ours
// is [in, column + out] or [column + out, in] of theirs.
Numbers part_of(const Numbers& theirs, const ForeignTensor& foreign, int64_t column,
                const Parameter& ours) {
  Numbers part;
  const int64_t rows = ours.spec.shape[0], columns = ours.count / rows;
  for (int64_t out = 0; out < rows; ++out) {
    for (int64_t in = 0; in < columns; ++in) {
      part.push_back(theirs[size_t(foreign.transposed ? in * foreign.shape[1] + column + out
                                                      : (column + out) * columns + in)]);
    }
  }
  return part;
}

class Golden : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const Path folder = Path(FIVEFOLD_GOLDEN_DIR) / GetParam().name;
    auto file = SafetensorsFile::open(folder / "expected.safetensors");
    ASSERT_TRUE(file) << file.error().message;
    expected_.emplace(std::move(*file));
    ctx_.backend = GetParam().backend;
    const Status imported =
        checkpoint::import_huggingface(folder / "model.safetensors", GetParam().model, parameters_);
    ASSERT_TRUE(imported) << imported.error().message;
    model_.emplace(GetParam().model, parameters_, ctx_,
                   spec::keep_of({.mode = GetParam().keep}, GetParam().model.num_layers), 24, 0);
    input_.sequences = 2;
    input_.seq_len = 24;
    input_.tokens = whole("tokens", tokens_, {48});
    input_.targets = whole("targets", targets_, {48});
    input_.positions = whole("positions", positions_, {48});
    input_.document_start = whole("document_start", document_start_, {2, 24});
    valid_ = 0;
    for (const int32_t target : targets_) valid_ += target >= 0 ? 1 : 0;
  }

  ConstView whole(const std::string& name, std::vector<int32_t>& to, const Shape& shape) {
    to.resize(size_t(shape.count()));
    const View view(to.data(), DType::i32, shape);
    const Status read = read_into(expected_->tensors().at(name), name, view);
    EXPECT_TRUE(read) << read.error().message;
    return view;
  }
  Numbers expected(const std::string& name) const {
    const checkpoint::StoredTensor& stored = expected_->tensors().at(name);
    Numbers numbers(size_t(stored.count()));
    const Status read = read_into(stored, name, View(numbers.data(), DType::f64, {stored.count()}));
    EXPECT_TRUE(read) << read.error().message;
    return numbers;
  }
  struct Expected {
    Numbers values;
    double foreign_norm = 0;  // of the Hugging Face tensor that it is a part of
  };
  // Of every parameter, in the parameters' order.
  std::vector<Expected> expected_of_all(const std::string& prefix) const {
    const auto layout = checkpoint::foreign_layout(GetParam().model, parameters_).value();
    std::map<const Parameter*, Expected> found;
    for (const ForeignTensor& foreign : layout) {
      const Numbers theirs = expected(prefix + foreign.name);
      int64_t column = 0;
      for (const Parameter* ours : foreign.parts) {
        found[ours] = {part_of(theirs, foreign, column, *ours), norm_of(theirs)};
        column += ours->spec.shape[0];
      }
    }
    std::vector<Expected> all;
    for (const Parameter& p : parameters_.all()) all.push_back(found.at(&p));
    return all;
  }
  double forward_backward() {
    model::Tape tape;
    parameters_.zero_gradients();
    const double loss = model_->forward(input_, tape) / double(valid_);
    model_->backward(input_, tape, {});
    return loss;
  }
  double tolerance() const { return GetParam().dtype == DType::f64 ? 1e-11 : 1e-5; }

  Memory memory_;
  kernels::ThreadPool pool_{2};
  kernels::Context ctx_{pool_, memory_};
  ParameterSet parameters_{memory_, spec::parameters_of(GetParam().model), GetParam().dtype, true};
  std::optional<SafetensorsFile> expected_;
  std::optional<model::Model> model_;
  model::Input input_;
  std::vector<int32_t> tokens_, targets_, positions_, document_start_;
  int64_t valid_ = 0;
};

TEST_P(Golden, LogitsAndLoss) {
  const Numbers want = expected("logits");
  const Tensor logits = model_->logits(input_);
  EXPECT_LE(distance(numbers_of(logits), want), tolerance() * norm_of(want));
  const double loss = expected("losses")[0];
  EXPECT_NEAR(model_->evaluate(input_) / double(valid_), loss, tolerance() * loss);
}

// Rule 5 of the design: |difference| <= tolerance * max(|tensor|, 1e-3 |all gradients|). A key bias
// without rotary positions has no gradient at all, because a shift of all scores of a query changes
// no softmax: what is left is the rounding of terms as large as its neighbours', so that it is
// judged as the part that it is of GPT-2's c_attn.bias.
TEST_P(Golden, EveryGradient) {
  const double loss = expected("losses")[0];
  EXPECT_NEAR(forward_backward(), loss, tolerance() * loss);
  const std::vector<Expected> want = expected_of_all("gradient.");
  double squares = 0;
  for (const Expected& g : want) squares += norm_of(g.values) * norm_of(g.values);
  const double total = std::sqrt(squares);
  ASSERT_GT(total, 1);
  for (size_t i = 0; i < want.size(); ++i) {
    Numbers have = numbers_of(parameters_.gradient(parameters_.all()[i]));
    for (double& g : have) g /= double(valid_);  // ours are of the summed loss
    const double norm = norm_of(want[i].values);
    const double scale = norm < 1e-12 * total ? want[i].foreign_norm : norm;
    EXPECT_LE(distance(have, want[i].values), tolerance() * std::max(scale, 1e-3 * total))
        << parameters_.all()[i].spec.name;
  }
}

TEST_P(Golden, ThreeOptimizerSteps) {
  const spec::OptimizerSpec settings{
      .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};
  optim::AdamWOptimizer optimizer(ctx_, parameters_, settings);
  const Numbers losses = expected("losses");
  for (int64_t step = 1; step <= int64_t(losses.size()); ++step) {
    const double want = losses[size_t(step - 1)];
    EXPECT_NEAR(forward_backward(), want, tolerance() * want) << "before step " << step;
    optimizer.step(ctx_, settings.lr, step, 1 / double(valid_));
  }
  const std::vector<Expected> want = expected_of_all("after.");
  for (size_t i = 0; i < want.size(); ++i) {
    const Parameter& p = parameters_.all()[i];
    EXPECT_LE(distance(numbers_of(parameters_.value(p)), want[i].values),
              tolerance() * norm_of(want[i].values))
        << p.spec.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Golden, testing::ValuesIn(cases()), [](const auto& tested) {
  const Case& c = tested.param;
  return std::string(c.name) + "_" + std::string(name_of(c.dtype)) +
         (c.backend == kernels::Backend::reference ? "_reference" : "_cpu") +
         (std::string(c.keep) == "full" ? "_recomputed" : "");
});

}  // namespace
}  // namespace fivefold
